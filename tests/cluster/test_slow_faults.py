"""The rest of the fault matrix: `pytest -m slow_cluster tests/cluster`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from perfproof.cluster import exclude
from perfproof.core.files import read_record
from perfproof.schema.cluster import Cause, EndState, RunEnding
from perfproof.schema.run import Manifest, State
from tests.cluster.misbehave import container
from tests.cluster.testbed import Testbed
from tests.cluster.workflow_run import WorkflowRun

pytestmark = [pytest.mark.cluster, pytest.mark.slow_cluster]

TRAINED = "results/orbit2/trials/baseline/nodes-2/rep-0/record.json"

Begin = Callable[..., WorkflowRun]


@pytest.fixture
def starter(root: Path, tmp_path: Path) -> Iterator[Callable[..., WorkflowRun]]:
    """Make a copy on a cluster; `fault` is a trial that goes wrong, the rest the cluster's keys."""
    made: list[WorkflowRun] = []

    def run(cluster: Testbed, fault: str = "", **site: Any) -> WorkflowRun:
        if fault:
            site["container"] = container(tmp_path)
        made.append(WorkflowRun(cluster, tmp_path, root, **site))
        if fault:
            made[-1].lever("hydragnn", fault, env={"FAULT": fault})
        return made[-1]

    yield run
    for one in made:
        one.end()


@pytest.fixture
def begin(slurm: Testbed, starter: Callable[..., WorkflowRun]) -> Begin:
    """The same on the four nodes."""
    return lambda fault="", **site: starter(slurm, fault, **site)


def manifest_of(folder: Path) -> Manifest:
    return read_record(folder / "manifest.json", Manifest)


def trains(run: WorkflowRun, folder: Path) -> Manifest:
    """Wait until ranks run."""
    output = folder / "launcher.txt"
    run.wait_until(lambda: output.is_file() and "rank 0 of" in output.read_text(), 60, "ranks")
    return manifest_of(folder)


def last_ending(run: WorkflowRun) -> RunEnding:
    """The ending that is recorded for the last job, which left no run directory."""
    paths = list((run.tree / "results/cluster/endings").glob("*.json"))
    return read_record(max(paths, key=lambda p: int(p.stem.rsplit("-", 1)[1])), RunEnding)


def test_probe_that_never_answers(begin: Begin, slurm: Testbed, tmp_path: Path) -> None:
    """The probe hangs on a1 before its first word: the deadline ends the wait, others train."""
    run = begin(health={"timeout_s": 8})
    hangs = run.tree / "hangs.py"
    hangs.write_text("import time\ntime.sleep(600)\n")
    probe = run.tree / "scripts/perfproof/training/probe.py"
    with slurm.mounted("a1", "--bind", str(hangs), str(probe)):
        run.perf_report(TRAINED)
        assert run.wait(180) == 0, run.log
    (bad,) = exclude.read(run.tree / exclude.EXCLUDE_FILE).nodes
    assert (bad.name, bad.reason) == ("a1", "health probe: no answer")
    manifest = manifest_of(run.run_dir("orbit2"))
    assert (manifest.state, "a1" in manifest.node_list) == (State.COMPLETED, False)


def test_every_node_is_bad(begin: Begin, slurm: Testbed, tmp_path: Path) -> None:
    """The retries run out: the end names the nodes, and the trial was never charged."""
    shared = tmp_path / "shared"
    shared.mkdir()
    run = begin(shared_paths=[str(shared)])
    with ExitStack() as mounts:
        for node in slurm.layout.nodes:
            mount = ("-t", "tmpfs", "-o", "ro", "none", str(shared))
            mounts.enter_context(slurm.mounted(node, *mount))
        run.perf_report()
        assert run.wait(180) == 1, run.log
    for node in slurm.layout.nodes:
        assert f"excluded node {node} until " in run.log
    assert not (run.run_dir() / "record.json").exists()
    assert len(run.jobs()) <= 3


def test_wall_time_limit_of_the_job(begin: Begin, slurm: Testbed) -> None:
    run = begin("sleep")
    run.perf_report(run.record("sleep"), "--retries=0")
    folder = run.run_dir(trial="sleep")
    job = trains(run, folder).slurm_job_id
    slurm.run("scontrol", "update", f"jobid={job}", "EndTime=now+1")
    assert run.wait(120) == 1, run.log
    ending = run.ending(folder)
    assert (ending.state, ending.blame) == (EndState.TIMEOUT, "run")


def test_hang_ends_at_the_runs_own_limit(begin: Begin) -> None:
    """Before SLURM's: the run completes its manifest, and that is a result."""
    run = begin("sleep", runtime_min=1)
    run.perf_report(run.record("sleep"))
    assert run.wait(150) == 0, run.log
    folder = run.run_dir(trial="sleep")
    assert manifest_of(folder).state is State.TIMEOUT
    assert run.ending(folder).state is EndState.TIMEOUT
    assert len(run.jobs()) == 1


def test_hang_in_training_is_ended_by_the_watchdog(begin: Begin) -> None:
    """One rank stops, the other waits for it; srun passes on the question where it stands."""
    run = begin(stall_timeout_min=0.1)
    run.lever("orbit2", "endless", set={"training.epochs": 100000})
    run.perf_report("results/orbit2/trials/endless/nodes-2/rep-0/record.json")
    folder = run.run_dir("orbit2", "endless")
    run.wait_until((folder / "rank0.json").is_file, 90, "the first step")
    rank_of(folder, 1).suspend()
    assert run.wait(120) == 0, run.log
    ending = run.ending(folder)
    assert (ending.state, ending.cause, ending.blame) == (EndState.FAILED, Cause.HANG, "unknown")
    assert (ending.evidence or "").startswith("perfproof: hang: nothing written for 6 s")
    assert "most recent call first" in (folder / "log_rank0.txt").read_text()
    assert len(run.jobs()) == 1


def rank_of(folder: Path, number: int) -> psutil.Process:
    """The process of one rank of a run: all nodes are this machine."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if words[1:3] != ["-m", "perfproof.training.rank"] or str(folder) not in words:
                continue
            if process.environ()["SLURM_PROCID"] == str(number):
                return process
    raise LookupError(f"no rank {number} of {folder}")


def test_memory_limit(limited: Testbed, starter: Callable[..., WorkflowRun]) -> None:
    run = starter(limited, "memory", mem_mb=900, cpus_per_node=2)
    run.perf_report(run.record("memory", nodes=1), nodes=1)
    assert run.wait(120) == 0, run.log
    ending = run.ending(run.run_dir(trial="memory", nodes=1))
    assert (ending.state, ending.cause) == (EndState.OUT_OF_MEMORY, Cause.HOST_MEMORY)
    assert (ending.exit_code, ending.blame) == (137, "run")
    assert len(run.jobs()) == 1


def test_prolog_that_fails(begin: Begin, slurm: Testbed) -> None:
    """The job is cancelled by SLURM, the node drained; the retry trains on others."""
    slurm.bad_prolog("a1")
    run = begin()
    run.perf_report(TRAINED)
    assert run.wait(180) == 0, run.log
    assert "a1" not in manifest_of(run.run_dir("orbit2")).node_list
    assert last_ending(run).state in (EndState.CANCELLED, EndState.HELD)
    assert last_ending(run).blame == "infrastructure"


SRUN_FAILS_ONCE = """#!/bin/sh
case "$*" in
  *perfproof.training.wrap*)
    mkdir {marker} 2>/dev/null && echo "srun: error: Unable to create step for job 1" && exit 1 ;;
esac
exec {srun} "$@"
"""


def test_srun_that_starts_no_rank_is_no_result(begin: Begin, tmp_path: Path) -> None:
    """A controller that is away for a moment, say: no node is blamed, the retry trains."""
    run = begin()
    program = tmp_path / "bin" / "srun"
    program.parent.mkdir(exist_ok=True)
    real = shutil.which("srun", path=run.cluster.env["PATH"])
    program.write_text(SRUN_FAILS_ONCE.format(marker=tmp_path / "failed", srun=real))
    program.chmod(0o755)
    run.perf_report(TRAINED)
    assert run.wait(180) == 0, run.log
    folder = run.run_dir("orbit2")
    assert manifest_of(folder).state is State.COMPLETED
    first = manifest_of(folder / "attempts" / "1")
    assert first.state is State.NODE_FAULT
    assert first.ended_by.startswith("no rank started: srun: error: Unable to create step")
    assert not (run.tree / exclude.EXCLUDE_FILE).exists()


def test_controller_that_is_away(begin: Begin, slurm: Testbed) -> None:
    run = begin()
    run.perf_report(TRAINED)
    trains(run, run.run_dir("orbit2"))
    slurm.stop_controller()
    time.sleep(25)
    slurm.start_controller()
    assert run.wait(240) == 0, run.log
    assert manifest_of(run.run_dir("orbit2")).state is State.COMPLETED
    assert len(run.jobs()) == 1


REFUSED = "the preflight failed: nothing was submitted"


@pytest.mark.parametrize(
    ("site", "nodes", "asked", "tried"),
    [
        (
            {"partition": "gpuu"},
            2,
            "fail  partition: no partition 'gpuu'",
            "invalid partition specified: gpuu",
        ),
        ({}, 9, "fail  nodes: 4 of 4 fit", "unsatisfiable"),
        (
            {"exclude": ["a1", "a2", "b1"]},
            2,
            "fail  nodes: 1 of 4 fit",
            "Requested node configuration is not available",
        ),
    ],
)
def test_request_that_cannot_be_had(
    begin: Begin, site: dict[str, Any], nodes: int, asked: str, tried: str
) -> None:
    """The preflight refuses it and submits nothing; without it the executor finds out."""
    run = begin(**site)
    run.perf_report(nodes=nodes)
    assert run.wait(60) == 1
    assert asked in run.log
    assert REFUSED in run.log
    assert run.jobs() == {}
    run.perf_report(nodes=nodes, preflight=False)
    assert run.wait(120) == 1
    assert tried in run.log
    assert REFUSED not in run.log
    assert not list(run.tree.glob("results/*/trials/*/*/rep-0/record.json"))


def test_account_that_does_not_exist(accounted: Testbed, starter: Any) -> None:
    accounted.run("sacctmgr", "-i", "add", "account", "proj")
    accounted.run("sacctmgr", "-i", "add", "user", "root", "account=proj")
    run = starter(accounted, account="prj")
    run.perf_report()
    assert run.wait(60) == 1
    assert "fail  account: 'prj' is not an account of yours" in run.log
    assert REFUSED in run.log
    run.perf_report(preflight=False)
    assert run.wait(120) == 1
    assert "The given account prj appears to be invalid" in run.log


def test_disk_full_in_the_run_directory(begin: Begin, slurm: Testbed) -> None:
    """Nothing fits under the run any more: the ending is kept beside the exclude list."""
    run = begin("fill")
    folder = run.run_dir(trial="fill", nodes=1)
    folder.mkdir(parents=True)
    with ExitStack() as mounts:
        for node in slurm.layout.nodes:
            small = ("-t", "tmpfs", "-o", "size=1m", "none", str(folder))
            mounts.enter_context(slurm.mounted(node, *small))
        run.perf_report(run.record("fill", nodes=1), "--retries=0", nodes=1)
        assert run.wait(120) == 1, run.log
        ending = last_ending(run)
    assert (ending.state, ending.cause) == (EndState.FAILED, Cause.DISK_FULL)
    assert ending.blame == "infrastructure"


def test_official_executor_runs_to_the_report(begin: Begin) -> None:
    run = begin()
    run.perf_report(model="orbit2", profile="slurm")
    assert run.wait(240) == 0, run.log
    assert run.ending(run.run_dir("orbit2")).state is EndState.COMPLETED


def test_official_executor_leaves_the_ending_of_a_lost_node(begin: Begin, slurm: Testbed) -> None:
    """SLURM is asked at the end of the invocation: the run itself was gone without a word."""
    run = begin("sleep")
    run.perf_report(run.record("sleep"), "--retries=0", profile="slurm")
    folder = run.run_dir(trial="sleep")
    slurm.lose_node(trains(run, folder).node_list[0])
    assert run.wait(240) == 1, run.log
    assert run.ending(folder).state is EndState.NODE_FAIL
    assert "rep-0: node_fail: manifest: running" in run.log


def test_cluster_without_srun_is_a_job_on_one_node(begin: Begin) -> None:
    run = begin()
    run.perf_report(model="orbit2", cluster="local", nodes=1)
    assert run.wait(180) == 0, run.log
    assert manifest_of(run.run_dir("orbit2", nodes=1)).slurm_job_id == next(iter(run.jobs()))


def test_analysis_as_jobs(begin: Begin) -> None:
    run = begin(analysis="jobs")
    run.perf_report(model="orbit2")
    assert run.wait(300) == 0, run.log
    assert len(run.jobs()) == 11
