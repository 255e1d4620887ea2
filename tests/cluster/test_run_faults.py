"""Runs that go wrong, on a real cluster: each ends in the state that names what happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfproof.core.files import read_record
from perfproof.schema.cluster import Cause, EndState
from perfproof.schema.run import LaunchRecord, State
from tests.cluster.misbehave import container
from tests.cluster.testbed import Testbed
from tests.cluster.workflow_run import WorkflowRun

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ALONE = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}


@pytest.fixture(scope="module")
def failed(
    four_nodes: Testbed, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkflowRun]:
    """One invocation in which each trial's training fails in its own way."""
    four_nodes.reset()
    folder = tmp_path_factory.mktemp("failed")
    run = WorkflowRun(four_nodes, folder, root, container=container(folder))
    for fault in ("abort", "exception", "watchdog", "disk"):
        run.lever("hydragnn", fault, env={"FAULT": fault})
    run.lever("hydragnn", "alone", env=ALONE)
    trials = ("abort", "exception", "watchdog", "disk", "alone")
    run.perf_report(*map(run.record, trials), "--keep-going")
    try:
        assert run.wait(150) == 0, run.log
        yield run
    finally:
        run.end()


@pytest.mark.parametrize(
    ("trial", "cause", "blame", "exit_code"),
    [
        ("abort", Cause.GPU_MEMORY_FAULT, "run", 134),
        ("exception", Cause.EXCEPTION, "run", 1),
        ("watchdog", Cause.HANG, "unknown", 134),
        ("disk", Cause.DISK_FULL, "infrastructure", 1),
        ("alone", Cause.RANKS_ALONE, "infrastructure", 1),
    ],
)
def test_training_that_fails_is_a_result_with_its_cause(
    failed: WorkflowRun, trial: str, cause: Cause, blame: str, exit_code: int
) -> None:
    folder = failed.run_dir(trial=trial)
    ending = failed.ending(folder)
    assert (ending.state, ending.cause, ending.blame) == (EndState.FAILED, cause, blame)
    assert ending.exit_code == exit_code
    assert read_record(folder / "record.json", LaunchRecord).state is State.FAILED
    # A failure of the training is submitted once.
    assert not (folder / "attempts").exists()


def test_ranks_that_think_they_are_alone_stop_in_seconds(failed: WorkflowRun) -> None:
    folder = failed.run_dir(trial="alone")
    assert "believes that it is one of 1; expected 2 ranks" in (folder / "launcher.txt").read_text()
    assert json.loads((folder / "manifest.json").read_text())["duration_s"] < 30
    assert not list(folder.glob("log_rank*.txt"))


@pytest.fixture(scope="module")
def lost(
    four_nodes: Testbed, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkflowRun]:
    """One invocation without retries in which something happens to each job."""
    four_nodes.reset()
    folder = tmp_path_factory.mktemp("lost")
    run = WorkflowRun(
        four_nodes, folder, root, container=container(folder), partition="low", cpus_per_node=8
    )
    trials = {"node_lost": 2, "cancelled": 1, "preempted": 1}
    for trial in trials:
        run.lever("hydragnn", trial, env={"FAULT": "sleep"})
    targets = [run.record(trial, nodes) for trial, nodes in trials.items()]
    run.perf_report(*targets, "--keep-going", "--retries=0")
    try:
        _make_trouble(run, trials)
        assert run.wait(120) == 1, run.log
        yield run
    finally:
        run.end()


def _make_trouble(run: WorkflowRun, trials: dict[str, int]) -> None:
    def manifest(trial: str) -> Path:
        return run.run_dir(trial=trial, nodes=trials[trial]) / "manifest.json"

    def trains() -> bool:
        logs = [p for t in trials for p in manifest(t).parent.glob("launcher.txt")]
        return all(manifest(t).exists() for t in trials) and len(logs) == len(trials)

    run.wait_until(trains, 90, "training of all runs")
    facts = {trial: json.loads(manifest(trial).read_text()) for trial in trials}
    run.cluster.lose_node(facts["node_lost"]["node_list"][1])
    run.cluster.run("scancel", facts["cancelled"]["slurm_job_id"])
    (node,) = facts["preempted"]["node_list"]
    run.cluster.submit("sleep 1", "--partition=high", f"--nodelist={node}", "--exclusive")


@pytest.mark.parametrize(
    ("trial", "nodes", "state"),
    [
        ("node_lost", 2, EndState.NODE_FAIL),
        ("cancelled", 1, EndState.CANCELLED),
        ("preempted", 1, EndState.PREEMPTED),
    ],
)
def test_what_happens_to_the_job_is_not_the_trials_fault(
    lost: WorkflowRun, trial: str, nodes: int, state: EndState
) -> None:
    folder = lost.run_dir(trial=trial, nodes=nodes)
    ending = lost.ending(folder)
    assert (ending.state, ending.blame) == (state, "infrastructure")
    assert not (folder / "record.json").exists()
    assert (folder / "manifest.json").is_file()
    assert f"hydragnn/trials/{trial}/nodes-{nodes}/rep-0: {state.value}: " in lost.log
