from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from perfproof.core.config import load_cluster
from perfproof.core.files import digest_file, digest_record, read_json, read_record
from perfproof.schema.base import Reason
from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.schema.run import Manifest, State
from perfproof.training import embedded
from perfproof.training.launch import Job, launch, status, time_limit_s
from perfproof.training.resolve import resolve
from perfproof.training.workload import Command
from tests.training.tiny_runs import Run, end_launch, start_launch, write_config

Launched = Callable[[str, str], Run]


def last_line(run: Run) -> str:
    return run.output.splitlines()[-1]


@pytest.fixture
def job(tiny_root: Path, tmp_path: Path) -> Job:
    resolved = resolve(tiny_root, model="orbit2", trial="baseline", cluster="here", nodes=1)
    return Job(resolved, load_cluster(tiny_root, "here"), tmp_path / "run", "orbit2/baseline")


def run_instead(monkeypatch: pytest.MonkeyPatch, code: str, *words: str) -> None:
    """Let the workload's command be a small program of the test's own."""
    argv = (sys.executable, "-c", code, *words)
    monkeypatch.setattr(
        embedded, "command", lambda *_: Command(argv=argv, shown=("python", "-c", "…"))
    )


def test_a_completed_run_says_so_everywhere(launched: Launched) -> None:
    run = launched("hydragnn", "ranks_2")
    assert run.exit_code == 0
    assert last_line(run).startswith("STATUS=ok; reason=completed in")
    manifest = run.manifest
    assert (manifest.state, manifest.exit_code, manifest.ended_by) == (
        State.COMPLETED,
        0,
        "exit",
    )
    assert manifest.started_at < (manifest.ended_at or "")
    assert run.record.state is State.COMPLETED
    assert (
        not (run.directory / "launcher.txt").exists()
        or run.directory.joinpath("launcher.txt").read_text()
    )


def test_digests_follow_from_the_files(launched: Launched) -> None:
    run = launched("hydragnn", "ranks_2")
    recipe = read_record(run.directory / "recipe.json", ResolvedRecipe)
    assert run.manifest.resolved == recipe
    assert run.manifest.recipe_digest == digest_record(recipe) == run.record.recipe_digest
    assert run.record.manifest_blake3 == digest_file(run.directory / "manifest.json")


def test_the_command_shows_no_path_of_this_machine(launched: Launched) -> None:
    command = launched("hydragnn", "ranks_2").manifest.command
    assert command == [
        *("torchrun", "--standalone", "--nproc-per-node=2", "--no-python"),
        *("python", "-m", "perfproof.training.rank", "--device", "cpu", "--run-dir", "."),
    ]


def test_a_failed_training_is_a_result(launched: Launched) -> None:
    run = launched("hydragnn", "compile_eager+no_profile")
    assert run.exit_code == 0
    assert last_line(run).startswith("STATUS=partial; reason=training failed: exit")
    assert (run.manifest.state, run.manifest.exit_code) == (State.FAILED, 1)
    assert run.manifest.rank0 is None
    assert run.manifest.reasons["rank0"] is Reason.RUN_INCOMPLETE
    assert run.record.state is State.FAILED


def test_sigterm_to_the_launcher_cancels_and_completes_the_manifest(cancelled: Run) -> None:
    assert cancelled.exit_code == 1
    assert last_line(cancelled).startswith("STATUS=fail; reason=cancelled: signal 15")
    assert (cancelled.manifest.state, cancelled.manifest.ended_by) == (
        State.CANCELLED,
        "signal 15",
    )
    assert cancelled.manifest.rank0 is not None
    assert not cancelled.record_file.exists()
    # The rank is gone: its log has stopped growing at a whole line.
    assert re.search(r"tic4-tic1 in \d+\.\d{4} seconds", cancelled.log())


def test_a_node_fault_ends_with_42_and_a_rerun_keeps_the_evidence(tmp_path: Path) -> None:
    root = write_config(tmp_path, {"shared_paths": [str(tmp_path / "not mounted")]})
    first = end_launch(start_launch(root, tmp_path, "orbit2", "baseline"), tmp_path)
    started = first.manifest.started_at
    assert first.exit_code == 42
    assert last_line(first).startswith("STATUS=fail; reason=node_fault: node fault:")
    assert "shared=FAIL" in (first.directory / "node_health_probe.txt").read_text()
    assert (first.manifest.state, first.manifest.exit_code) == (State.NODE_FAULT, None)
    assert not list(first.directory.glob("log_rank*"))

    assert not first.record_file.exists()

    again = end_launch(start_launch(root, tmp_path, "orbit2", "batch_2"), tmp_path)
    kept = read_record(again.directory / "attempts" / "1" / "manifest.json", Manifest)
    assert (kept.started_at, kept.resolved.trial) == (started, "baseline")
    assert again.manifest.resolved.trial == "batch_2"


def test_the_manifest_says_running_while_ranks_run(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
    seen = tmp_path / "seen.json"
    run_instead(monkeypatch, copy, str(job.run_dir / "manifest.json"), str(seen))
    manifest = launch(job, os.environ)
    during = read_record(seen, Manifest)
    assert (during.state, during.ended_by, during.ended_at) == (State.RUNNING, "running", None)
    assert during.started_at == manifest.started_at
    assert manifest.state is State.COMPLETED
    assert manifest.reasons["rank0"] is Reason.RUN_INCOMPLETE


def test_an_unreadable_report_of_rank_0_is_said_to_be_one(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = "import sys; open(sys.argv[1], 'w').write('{}')"
    run_instead(monkeypatch, write, str(job.run_dir / "rank0.json"))
    assert launch(job, os.environ).reasons["rank0"] is Reason.UNREADABLE


def test_an_exception_in_the_launcher_completes_the_manifest(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "finish", lambda *_: 1 / 0)
    run_instead(monkeypatch, "pass")
    with pytest.raises(ZeroDivisionError):
        launch(job, os.environ)
    assert read_record(job.run_dir / "manifest.json", Manifest).state is State.COMPLETED
    monkeypatch.setattr("perfproof.training.launch.time_limit_s", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        launch(job, os.environ)
    manifest = read_record(job.run_dir / "manifest.json", Manifest)
    assert (manifest.state, manifest.exit_code) == (State.FAILED, None)
    assert manifest.ended_by == "ZeroDivisionError: division by zero"


def test_the_time_limit_is_a_result(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    run_instead(monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr("perfproof.training.launch.time_limit_s", lambda *_: 0.5)
    manifest = launch(job, os.environ)
    assert manifest.state is State.TIMEOUT
    assert status(manifest).state == "partial"


def until(done: Callable[[], bool]) -> None:
    """Wait for what must happen within two minutes."""
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ranks_of(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    """The ranks of a launch, once they all train."""
    found: list[psutil.Process] = []

    def there() -> bool:
        assert process.poll() is None
        children = psutil.Process(process.pid).children(recursive=True)
        found[:] = [child for child in children if is_rank(child)]
        return len(found) == count

    until(there)
    return found


def is_rank(process: psutil.Process) -> bool:
    """Not torchrun, whose command line ends in the rank's."""
    with contextlib.suppress(psutil.Error):
        return process.cmdline()[1:3] == ["-m", "perfproof.training.rank"]
    return False


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
def test_a_rank_that_hangs_in_training_is_a_failure_with_its_stack(tmp_path: Path) -> None:
    """One of two ranks stops; the other waits for it in a collective, and neither says a word."""
    root = write_config(tmp_path, {"stall_timeout_min": 0.05})
    process = start_launch(root, tmp_path, "orbit2", "endless+ranks_2")
    ranks = ranks_of(process, 2)
    until((tmp_path / "run" / "rank0.json").exists)
    stopped = next(rank for rank in ranks if rank.environ()["RANK"] == "1")
    stopped.suspend()
    run = end_launch(process, tmp_path)
    assert (run.manifest.state, run.record.state) == (State.FAILED, State.FAILED)
    assert run.manifest.ended_by.startswith("hang: nothing written for 3 s")
    assert last_line(run).startswith("STATUS=partial; reason=training failed: hang: ")
    assert "most recent call first" in run.log(0)
    assert "/embedded/" in run.log(0)
    assert not alive(ranks)


@pytest.mark.slow
def test_ranks_die_with_a_launcher_that_is_killed(tmp_path: Path) -> None:
    root = write_config(tmp_path)
    process = start_launch(root, tmp_path, "orbit2", "endless+ranks_2")
    ranks = ranks_of(process, 2)
    family = psutil.Process(process.pid).children(recursive=True)
    until((tmp_path / "run" / "rank0.json").exists)
    process.kill()
    process.communicate(timeout=30)
    until(lambda: not alive(family))
    assert len(family) > len(ranks)  # torchrun among them
    again = end_launch(start_launch(root, tmp_path, "orbit2", "batch_2"), tmp_path)
    assert again.manifest.state is State.COMPLETED
    kept = read_record(again.directory / "attempts" / "1" / "manifest.json", Manifest)
    assert kept.state is State.RUNNING


def test_a_second_launch_beside_a_live_one_is_refused(tmp_path: Path) -> None:
    root = write_config(tmp_path)
    process = start_launch(root, tmp_path, "orbit2", "endless")
    ranks = ranks_of(process, 1)
    second = start_launch(root, tmp_path, "orbit2", "endless")
    said, _ = second.communicate(timeout=60)
    process.terminate()
    first = end_launch(process, tmp_path)
    assert second.returncode == 1
    found = f"another launch of this run is alive (process {process.pid} on {socket.gethostname()})"
    assert said.startswith(f"STATUS=fail; reason={tmp_path / 'run'}: {found}; expected its end")
    assert first.manifest.state is State.CANCELLED
    assert not (first.directory / "attempts").exists()
    assert not alive(ranks)


def test_time_limit_leaves_room_before_the_allocation_ends() -> None:
    cluster = Cluster(cluster="here", description="", runtime_min=10)
    assert time_limit_s(cluster, None, 1000.0) == 600.0
    assert time_limit_s(cluster, 1300.0, 1000.0) == 240.0
    assert time_limit_s(cluster, 9000.0, 1000.0) == 600.0
    assert time_limit_s(cluster, 1010.0, 1000.0) == 0.0


def test_the_probe_can_be_switched_off(tmp_path: Path) -> None:
    keys = {"shared_paths": [str(tmp_path / "not mounted")], "health": {"enabled": False}}
    root = write_config(tmp_path, keys)
    run = end_launch(start_launch(root, tmp_path, "orbit2", "baseline"), tmp_path)
    assert run.manifest.state is State.COMPLETED
    assert not (run.directory / "node_health_probe.txt").exists()


def test_the_manifest_says_what_came_from_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("SITE_MODULES", "rocm/6")
    found = end_launch(
        start_launch(write_config(tmp_path), tmp_path, "orbit2", "variable"), tmp_path
    ).manifest.environment
    assert found.cleared["NCCL_ALGO"] == "Ring"
    assert found.given["SOME_SWITCH"] == "on"
    assert "SITE_MODULES" in found.leaked


def test_bad_input_starts_nothing(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({"trial": "baseline"}))
    words = ["--recipe", str(recipe), "--run-dir", str(tmp_path / "run"), "--run-id", "x"]
    command = [sys.executable, "-m", "perfproof.training.launch", *words, "--record"]
    done = subprocess.run([*command, str(tmp_path / "r.json")], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith(f"STATUS=fail; reason={recipe}: ")
    assert not (tmp_path / "run").exists()
    assert read_json(recipe) == {"trial": "baseline"}
