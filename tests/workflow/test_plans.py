"""Dry runs of every configuration case, and bad configuration, as a person types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tracelens.stand_in import unrelated
from tests.training.test_resolve import shipped
from tests.workflow.tree import planned, snakemake

ANALYSIS = {
    "inventory": 1,
    "trace_tables": 1,
    "tracelens": 1,
    "foms": 1,
    "telemetry_summary": 1,
    "claim_from_trace": 1,
    "claim_from_telemetry": 1,
    "verify": 2,
    "combine": 1,
    "render": 1,
    "perf_report": 1,
}
RUN = {"launch": 1, **ANALYSIS}


@pytest.mark.workflow
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("perf_report",),
        ("perf_report", "--config", "model=orbit2"),
        ("perf_report", "--config", "model=hydragnn", "repetition=1"),
        ("perf_report", "--config", "cluster=mi355x", "nodes=2", "workload=embedded"),
        ("perf_report", "--config", "cluster=h200", "workload=embedded"),
        ("--profile", "slurm", "perf_report"),
    ],
)
def test_a_run_is_launched_and_analysed(shared_tree: Path, arguments: tuple[str, ...]) -> None:
    result = snakemake(shared_tree, "-n", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert planned(result) == RUN


@pytest.mark.workflow
@pytest.mark.parametrize("model", ["hydragnn", "orbit2"])
def test_every_lever_that_resolves_can_be_a_trial(
    root: Path, shared_tree: Path, model: str
) -> None:
    """The others are refused with a reason: `tests/training/test_resolve.py`."""
    digests, _ = shipped(root, model)
    targets = [f"results/{model}/trials/{lever}/nodes-1/rep-0/record.json" for lever in digests]
    result = snakemake(shared_tree, "-n", *targets)
    assert result.returncode == 0, result.stdout + result.stderr
    assert planned(result)["launch"] == len(targets)


@pytest.mark.workflow
def test_recorded_artifacts_plan_no_launch(shared_tree: Path, tmp_path: Path) -> None:
    (tmp_path / "log_rank0.txt").write_text("epoch  0\n")
    result = snakemake(shared_tree, "-n", "perf_report", "--config", f"artifacts={tmp_path}")
    assert result.returncode == 0, result.stdout + result.stderr
    assert planned(result) == ANALYSIS


@pytest.mark.workflow
def test_another_author_is_asked_and_judged(shared_tree: Path) -> None:
    author = ("analyst=command", "analyst_command=python agent.py --fast")
    result = snakemake(shared_tree, "-n", "perf_report", "--config", *author)
    assert result.returncode == 0, result.stdout + result.stderr
    assert planned(result) == {**RUN, "claim_by_author": 2, "verify_author": 2}


@pytest.mark.workflow
def test_tracelens_that_is_not_there_is_told_before_the_run(
    shared_tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PERFPROOF_TRACELENS_PYTHON", str(unrelated(tmp_path)))
    result = snakemake(shared_tree, "-n", "--config", "trace_backend=tracelens")
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    assert "is another project" in output
    assert "pip install git+https://github.com/AMD-AGI/TraceLens.git" in output
    assert "Traceback" not in output


@pytest.mark.workflow
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model=hydragn", "unknown model 'hydragn'; expected 'hydragnn'"),
        ("cluster=locl", "unknown cluster 'locl'; expected 'local'"),
        ("modle=orbit2", "config: modle: unknown key; expected 'model'"),
        ("trial=num_worker_2", "num_worker_2"),
        ("nodes=0", "config: nodes: found 0; expected"),
        ("nodes=two", "config: nodes: found 'two'; expected"),
        ("workload=embeded", "config: workload: found 'embeded'; expected"),
        ("artifacts=no/such/place", "no/such/place: no such file or directory; expected"),
        ("artifacts=docs", "docs: nothing to analyse among"),
        ("analyst=command", "config: analyst_command: nothing; expected a command line"),
        ("analyst=openai", "config: analyst_model: nothing; expected"),
    ],
)
def test_bad_configuration_is_one_clear_line(shared_tree: Path, setting: str, message: str) -> None:
    result = snakemake(shared_tree, "-n", "perf_report", "--config", setting)
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    assert [line for line in output.splitlines() if message in line], output
    assert "Traceback" not in output


@pytest.mark.workflow
def test_a_misspelt_recipe_key_names_file_and_key(tree: Path) -> None:
    recipe = tree / "config" / "recipes" / "orbit2.yaml"
    recipe.write_text(recipe.read_text().replace("epochs:", "epoch:"))
    result = snakemake(tree, "-n", "perf_report", "--config", "model=orbit2")
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    assert "orbit2.yaml: training.epoch: unknown key; expected 'epochs'" in output
