"""After a launch: the ending is written, failed nodes are excluded, the exit code passes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.cluster import exclude
from perfproof.cluster.settle import comment_of
from perfproof.core.files import read_record, write_record
from perfproof.schema.base import Reason
from perfproof.schema.cluster import EndState, HealthReport, NodeHealth, RunEnding
from perfproof.schema.run import State
from tests.cluster.runs import manifest

LISTED = Path("results/cluster/excluded_nodes.json")
RUN = Path("results/m/trials/baseline/nodes-2/rep-0")


def settle(folder: Path, root: Path, *words: str) -> tuple[int, str]:
    argv = [sys.executable, "-m", "perfproof.cluster.settle", "--root", str(root), *words]
    env = {"PATH": "/nowhere", "PYTHONPATH": str(root / "scripts")}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout


def node(name: str, fault: str | None) -> NodeHealth:
    reasons = {"clock_offset_s": Reason.NOT_RECORDED}
    if fault is None:
        reasons["fault"] = Reason.NOT_APPLICABLE
    return NodeHealth(name=name, tests={}, clock_offset_s=None, fault=fault, reasons=reasons)


def left(folder: Path, state: State, *nodes: NodeHealth) -> None:
    """What a launch in job 7 left."""
    write_record(folder / RUN / "manifest.json", manifest(state, job_id="7"))
    reasons = {"fault": Reason.NOT_APPLICABLE}
    report = HealthReport(nodes=list(nodes), fault=None, reasons=reasons)
    write_record(folder / RUN / "node_health.json", report)
    (folder / RUN / "node_health_probe.txt").write_text("NODE_HEALTH n2 shared=FAIL\n")


def test_a_failed_node_is_excluded_with_evidence_that_stays(tmp_path: Path, root: Path) -> None:
    left(tmp_path, State.NODE_FAULT, node("n1", None), node("n2", "shared=FAIL"))
    code, said = settle(tmp_path, root, "--run-dir", str(RUN), "--launch-exit", "42")
    assert code == 42
    assert said.splitlines()[-1].endswith("; excluded from now on: n2")
    (bad,) = exclude.read(tmp_path / LISTED).nodes
    assert (bad.name, bad.reason) == ("n2", "health probe: shared=FAIL")
    assert bad.evidence == "results/cluster/evidence/n2-7.txt"
    assert (tmp_path / bad.evidence).read_text() == "NODE_HEALTH n2 shared=FAIL\n"
    assert read_record(tmp_path / RUN / "ending.json", RunEnding).state is EndState.NODE_FAIL


@pytest.mark.parametrize(
    ("state", "launch_exit", "code", "status"),
    [
        (State.COMPLETED, 0, 0, "ok; reason=completed: "),
        (State.FAILED, 0, 0, "partial; reason=failed, unknown: "),
        (State.CANCELLED, 1, 1, "fail; reason=cancelled: "),
        (State.NODE_FAULT, 42, 42, "fail; reason=node_fail: "),
    ],
)
def test_the_launchs_exit_code_decides(
    tmp_path: Path, root: Path, state: State, launch_exit: int, code: int, status: str
) -> None:
    left(tmp_path, state)
    found, said = settle(tmp_path, root, "--run-dir", str(RUN), "--launch-exit", str(launch_exit))
    assert (found, said.splitlines()[-1].startswith(f"STATUS={status}")) == (code, True)
    assert not (tmp_path / LISTED).exists()


def test_a_launch_without_a_word_is_passed_on(tmp_path: Path, root: Path) -> None:
    (tmp_path / RUN).mkdir(parents=True)
    assert settle(tmp_path, root, "--run-dir", str(RUN), "--launch-exit", "1")[0] == 1
    assert not (tmp_path / RUN / "ending.json").exists()


def test_an_attempt_that_nobody_ended_is_left_alone_while_slurm_is_silent(
    tmp_path: Path, root: Path
) -> None:
    left(tmp_path, State.RUNNING)
    code, said = settle(tmp_path, root, "--run-dir", str(RUN))
    assert (code, "not settled" in said) == (0, True)
    assert not (tmp_path / RUN / "ending.json").exists()


def test_giving_up_names_runs_and_nodes(tmp_path: Path, root: Path) -> None:
    left(tmp_path, State.NODE_FAULT, node("n2", "no answer"))
    settle(tmp_path, root, "--run-dir", str(RUN), "--launch-exit", "42")
    code, said = settle(tmp_path, root, "--results", "results")
    assert code == 0
    assert "m/trials/baseline/nodes-2/rep-0: node_fail: " in said
    assert "excluded node n2 until " in said
    assert "1 run(s) without a result, 1 node(s) excluded" in said


def test_a_job_is_found_by_what_the_executor_writes_on_it() -> None:
    run = "orbit2/trials/a+b_1/nodes-2/rep-0"
    assert comment_of(run) == "rule_launch_wildcards_orbit2_a+b_1_2_0"
