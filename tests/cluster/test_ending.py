"""From a job's end on a real cluster to the record of how the run ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.core.files import read_record, write_record
from perfproof.schema.cluster import Cause, EndState, RunEnding
from perfproof.schema.run import State
from tests.cluster.runs import manifest
from tests.cluster.testbed import Testbed


def ending(run_dir: Path, *words: str) -> tuple[str, RunEnding | None]:
    out = run_dir / "ending.json"
    argv = [sys.executable, "-m", "perfproof.cluster.ending", "--run-dir", str(run_dir)]
    argv += ["--out", str(out), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("STATUS=")
    assert (done.returncode == 0) == out.is_file()
    return last, read_record(out, RunEnding) if out.is_file() else None


def test_run_that_says_it_completed_needs_no_scheduler(tmp_path: Path) -> None:
    write_record(tmp_path / "manifest.json", manifest(State.COMPLETED, exit_code=0))
    said, record = ending(tmp_path)
    assert said.startswith("STATUS=ok; reason=completed: ")
    assert record
    assert (record.state, record.rests_on, record.blame) == (EndState.COMPLETED, "run", "none")


def test_failed_run_is_classified_from_the_logs_of_all_ranks(tmp_path: Path) -> None:
    write_record(tmp_path / "manifest.json", manifest(State.FAILED, exit_code=1))
    (tmp_path / "log_rank0.txt").write_text("ncclRemoteError: Last error\n")
    (tmp_path / "log_rank10.txt").write_text("x" * 100_000 + "\nCUDA out of memory. Tried\n")
    said, record = ending(tmp_path)
    assert said.startswith("STATUS=partial; reason=failed, device_memory: ")
    assert record
    assert record.evidence == "CUDA out of memory. Tried"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "not settled"),
        (("--job-id", "1;reboot"), "1;reboot; expected a SLURM job id"),
        (("--run-dir", "nowhere"), "nowhere: run-dir: no such directory"),
    ],
)
def test_nothing_is_written_where_nothing_is_known(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    last, record = ending(tmp_path, *words)
    assert record is None
    assert last.startswith("STATUS=fail; reason=")
    assert said in last


@pytest.mark.cluster
def test_node_that_is_lost_under_a_run(slurm: Testbed, tmp_path: Path) -> None:
    job = slurm.submit("sleep 300", "--nodelist=a2", "--no-requeue")
    slurm.wait_state(job, "RUNNING")
    write_record(tmp_path / "manifest.json", manifest(State.RUNNING, job_id=job))
    assert ending(tmp_path)[1] is None
    slurm.lose_node("a2")
    said, record = ending(tmp_path, "--wait-s", "20")
    assert said.startswith("STATUS=partial; reason=node_fail: manifest: running")
    assert record
    assert (record.rests_on, record.blame) == ("scheduler", "infrastructure")
    assert record.scheduler_said
    assert "JobState=NODE_FAIL" in record.scheduler_said
    assert "NodeList=a2" in record.scheduler_said


@pytest.mark.cluster
def test_job_over_its_memory_limit(limited: Testbed, tmp_path: Path) -> None:
    eat = f"exec {sys.executable} -c 'x = bytearray(10**9)'"
    job = limited.submit(eat, "--mem=50", f"--output={tmp_path}/log_rank0.txt")
    limited.wait_state(job, "OUT_OF_MEMORY")
    write_record(tmp_path / "manifest.json", manifest(State.RUNNING, job_id=job))
    _, record = ending(tmp_path)
    assert record
    assert (record.state, record.cause) == (EndState.OUT_OF_MEMORY, Cause.HOST_MEMORY)
    assert record.blame == "run"
    assert record.evidence
    assert "oom" in record.evidence
