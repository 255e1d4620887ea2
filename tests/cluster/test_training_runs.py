"""From `snakemake --profile slurm-bounded` on real nodes, one of them bad, to the reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfproof.cluster import exclude
from perfproof.core.files import read_record
from perfproof.core.series import EXPORT_FILE, read_export
from perfproof.schema.cluster import EndState
from perfproof.schema.run import Manifest, State
from tests.cluster.testbed import Testbed
from tests.cluster.workflow_run import WorkflowRun

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

MODELS = ("hydragnn", "orbit2")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that every node must be able to write; a1 cannot."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def trained(
    four_nodes: Testbed, root: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkflowRun]:
    """One invocation for the reports of both models, each on two nodes."""
    four_nodes.reset()
    folder = tmp_path_factory.mktemp("trained")
    run = WorkflowRun(four_nodes, folder, root, shared_paths=[str(shared)])
    reports = [
        f"results/{model}/trials/baseline/nodes-2/rep-0/combined_report.html" for model in MODELS
    ]
    try:
        with four_nodes.mounted("a1", "-t", "tmpfs", "-o", "ro", "none", str(shared)):
            run.perf_report(*reports)
            assert run.wait(180) == 0, run.log
        yield run
    finally:
        run.end()


def test_the_preflight_is_done_once_and_before_the_first_job(trained: WorkflowRun) -> None:
    """Inside each job Snakemake reads the same Snakefile again."""
    told = "ok    slurm: "
    assert trained.log.count(told) == 1
    assert trained.log.index(told) < trained.log.index("submitted with SLURM jobid")
    logs = sorted((trained.tree / ".snakemake/slurm_logs").rglob("*.log"))
    assert len(logs) >= len(MODELS)
    assert not [path for path in logs if told in path.read_text(errors="replace")]


@pytest.mark.parametrize("model", MODELS)
def test_ranks_on_two_nodes_train_together(trained: WorkflowRun, model: str) -> None:
    folder = trained.run_dir(model)
    manifest = read_record(folder / "manifest.json", Manifest)
    assert manifest.state is State.COMPLETED
    assert len(set(manifest.node_list)) == 2
    assert manifest.rank0
    assert manifest.rank0.world_size == 2
    who = sorted((folder / "launcher.txt").read_text().splitlines())
    assert [line.split(",")[0] for line in who] == ["rank 0 of 2", "rank 1 of 2"]
    assert len({line.split()[-1] for line in who}) == 2


@pytest.mark.parametrize("model", MODELS)
def test_the_report_says_where_and_how_it_ended(trained: WorkflowRun, model: str) -> None:
    folder = trained.run_dir(model)
    assert trained.ending(folder).state is EndState.COMPLETED
    card = json.loads((folder / "combined_report.json").read_text())["run"]
    assert (card["state"], card["ranks"], len(card["node_list"])) == ("completed", 2, 2)


def test_the_bad_node_is_excluded_on_its_own_evidence(trained: WorkflowRun, shared: Path) -> None:
    (bad,) = exclude.read(trained.tree / exclude.EXCLUDE_FILE).nodes
    assert bad.name == "a1"
    assert bad.reason == f"health probe: home=OK shared=FAIL failed=shared:{shared}:EROFS"
    evidence = (trained.tree / bad.evidence).read_text()
    assert "NODE_HEALTH a1 home=OK shared=FAIL" in evidence
    assert "NODE_HEALTH a2 home=OK shared=OK" in evidence


def test_the_run_succeeds_elsewhere_and_has_one_result(trained: WorkflowRun) -> None:
    # What first attempts left is kept; the trials' records are from the second ones.
    before = list(trained.tree.glob("results/*/trials/baseline/nodes-2/rep-0/attempts/1"))
    assert before
    for folder in before:
        assert read_record(folder / "manifest.json", Manifest).state is State.NODE_FAULT
        ending = trained.ending(folder)
        assert (ending.state, ending.blame) == (EndState.NODE_FAIL, "infrastructure")
    jobs = [trained.cluster.job(job)["ExcNodeList"] for job in sorted(trained.jobs(), key=int)]
    assert jobs == ["(null)", "(null)", *["a1"] * len(before)]


@pytest.mark.parametrize("model", MODELS)
def test_both_nodes_were_sampled_beside_the_ranks(trained: WorkflowRun, model: str) -> None:
    folder = trained.tree / f"results/{model}/trials/baseline/nodes-2/rep-0"
    manifest = read_record(folder / "manifest.json", Manifest)
    found = {node.node: node for node in manifest.telemetry.nodes}
    assert list(found) == manifest.node_list
    assert {node.state for node in found.values()} == {"collected"}
    assert all(node.samples >= 2 for node in found.values())
    jobs = [
        (one.metric["instance"], one.metric["jobid"])
        for one in read_export(folder / "telemetry" / EXPORT_FILE)
        if one.metric["__name__"] == "rmsjob_info"
    ]
    assert jobs == [(node, manifest.slurm_job_id) for node in sorted(found)]
