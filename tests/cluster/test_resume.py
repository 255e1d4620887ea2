"""Snakemake interrupted in every way on a real cluster; one command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.cluster.resume import directory_of, resumed
from perfproof.core.errors import InputError
from tests.cluster.processes import wait_until
from tests.cluster.snakemake_run import SnakemakeRun
from tests.cluster.testbed import Testbed

cluster = pytest.mark.cluster
QUICK = ("--seconds-between-status-checks=1", "--slurm-bounded-status-pause=1")

# Each rule counts how often it ran to its end: finished work must not be repeated.
CHAIN = """
localrules: before, after
rule after:
    input: "during.txt"
    output: "after.txt"
    shell: "echo >> after.count; touch {{output}}"
rule during:
    input: "before.txt"
    output: "during.txt"
    shell: "echo >> started.count; sleep {seconds}; echo >> during.count; touch {{output}}"
rule before:
    output: "before.txt"
    shell: "echo >> before.count; touch {{output}}"
"""


def started(run: SnakemakeRun, name: str = "started.count", limit_s: float = 40) -> None:
    """Wait until the file that a rule or a wrapper writes is there."""

    def there() -> bool:
        assert run.runs(), run.log
        return (run.directory / name).is_file()

    wait_until(there, limit_s, f"{name}\n{run.log}")


def counts(run: SnakemakeRun) -> dict[str, int]:
    names = ("before", "started", "during", "after")
    files = {name: run.directory / f"{name}.count" for name in names}
    return {n: len(p.read_text().splitlines()) if p.is_file() else 0 for n, p in files.items()}


def states(run: SnakemakeRun) -> list[str]:
    """States of all jobs that were ever submitted, oldest first."""
    return [state for _, state in sorted(run.jobs().items(), key=lambda job: int(job[0]))]


def kill(run: SnakemakeRun, by: signal.Signals = signal.SIGKILL) -> None:
    """End Snakemake alone: what it started lives on."""
    os.kill(run.pid, by)
    run.wait(30)


def slow_sbatch(run: SnakemakeRun, seconds: int) -> None:
    """Let every submission take its time, and say when one begins."""
    bin_dir = run.directory / "bin"
    bin_dir.mkdir()
    script = bin_dir / "sbatch"
    real = "/usr/bin/sbatch"
    script.write_text(
        f'#!/bin/sh\ntouch {run.directory}/submitting\nsleep {seconds}\nexec {real} "$@"\n'
    )
    script.chmod(0o755)
    run.env["PATH"] = f"{bin_dir}:{run.env['PATH']}"


ONCE = {"before": 1, "started": 1, "during": 1, "after": 1}


@cluster
def test_killed_before_the_submission_finishes(snakemake: SnakemakeRun) -> None:
    slow_sbatch(snakemake, seconds=3)
    snakemake.start(CHAIN.format(seconds=1), *QUICK)
    started(snakemake, "submitting")
    kill(snakemake)
    assert not snakemake.jobs()
    snakemake.resume()
    assert snakemake.wait(60) == 0, snakemake.log
    assert "(submission)" in snakemake.log
    assert states(snakemake) == ["COMPLETED"]
    assert counts(snakemake) == ONCE


@cluster
def test_killed_while_the_job_runs(snakemake: SnakemakeRun) -> None:
    snakemake.start(CHAIN.format(seconds=4), *QUICK)
    started(snakemake)
    kill(snakemake)
    (job,) = snakemake.jobs()
    snakemake.resume()
    assert snakemake.wait(60) == 0, snakemake.log
    assert f"waiting for job {job} (during)" in snakemake.log
    assert "STATUS=ok; reason=1 jobs were open, 0 cancelled; removed the stale lock" in (
        snakemake.log
    )
    assert states(snakemake) == ["COMPLETED"]
    assert counts(snakemake) == ONCE


@cluster
def test_killed_after_the_job_ended_unnoticed(snakemake: SnakemakeRun) -> None:
    late = ("--seconds-between-status-checks=60", "--slurm-bounded-status-pause=60")
    snakemake.start(CHAIN.format(seconds=1), *late)
    snakemake.cluster.wait_state(snakemake.wait_job("RUNNING", "COMPLETED"), "COMPLETED")
    assert counts(snakemake)["after"] == 0
    kill(snakemake)
    snakemake.resume(then=QUICK)
    assert snakemake.wait(60) == 0, snakemake.log
    assert states(snakemake) == ["COMPLETED"]
    assert counts(snakemake) == ONCE


@cluster
@pytest.mark.slow_cluster
def test_control_c_then_only_what_was_cancelled_runs_again(snakemake: SnakemakeRun) -> None:
    snakemake.start(CHAIN.format(seconds=3), *QUICK)
    started(snakemake)
    kill(snakemake, signal.SIGINT)
    snakemake.resume()
    assert snakemake.wait(60) == 0, snakemake.log
    assert states(snakemake) == ["CANCELLED", "COMPLETED"]
    assert counts(snakemake) == ONCE | {"started": 2}


@cluster
@pytest.mark.slow_cluster
def test_terminated_snakemake_that_still_waits_is_waited_for(snakemake: SnakemakeRun) -> None:
    snakemake.start(CHAIN.format(seconds=5), *QUICK)
    started(snakemake)
    os.kill(snakemake.pid, signal.SIGTERM)
    snakemake.resume()
    assert snakemake.wait(60) == 0, snakemake.log
    assert "(snakemake)" in snakemake.log
    assert states(snakemake) == ["COMPLETED"]
    assert counts(snakemake) == ONCE


@cluster
@pytest.mark.slow_cluster
def test_lost_login_session(snakemake: SnakemakeRun) -> None:
    snakemake.start(CHAIN.format(seconds=4), *QUICK)
    started(snakemake)
    # The whole session gets the signal, as when a terminal goes away.
    os.killpg(os.getsid(snakemake.pid), signal.SIGHUP)
    snakemake.wait(30)
    snakemake.resume()
    assert snakemake.wait(60) == 0, snakemake.log
    assert states(snakemake) == ["COMPLETED"]
    assert counts(snakemake) == ONCE


@cluster
@pytest.mark.slow_cluster
def test_orphans_are_cancelled_on_request(snakemake: SnakemakeRun) -> None:
    snakemake.start(CHAIN.format(seconds=6), *QUICK)
    started(snakemake)
    kill(snakemake)
    snakemake.resume("--cancel")
    assert snakemake.wait(60) == 0, snakemake.log
    assert states(snakemake) == ["CANCELLED", "COMPLETED"]
    assert counts(snakemake) == ONCE | {"started": 2}


@cluster
@pytest.mark.slow_cluster
def test_jobs_of_the_official_executor(snakemake: SnakemakeRun) -> None:
    official = ("--slurm-init-seconds-before-status-checks=1", "--slurm-status-command=squeue")
    snakemake.start(CHAIN.format(seconds=4), *official, executor="slurm")
    started(snakemake)
    kill(snakemake)
    snakemake.resume()
    assert snakemake.wait(90) == 0, snakemake.log
    assert states(snakemake) == ["COMPLETED"]
    assert counts(snakemake) == ONCE


@cluster
@pytest.mark.slow_cluster
def test_local_job_that_outlives_snakemake_is_waited_for(snakemake: SnakemakeRun) -> None:
    text = CHAIN.format(seconds=1).replace("echo >> before", "touch begun; sleep 5; echo >> before")
    snakemake.start(text, *QUICK)
    started(snakemake, "begun")
    kill(snakemake)
    snakemake.resume()
    assert snakemake.wait(60) == 0, snakemake.log
    assert "(local job)" in snakemake.log
    # Nobody was left to record that it had finished: only the local job runs again.
    assert counts(snakemake) == ONCE | {"before": 2}


@cluster
def test_job_that_cannot_start_is_not_waited_for(snakemake: SnakemakeRun) -> None:
    impossible = "rule one:\n    output: 'x'\n    resources: nodes=9, tasks=9\n    shell: 'touch x'"
    snakemake.start(impossible, *QUICK)
    job = snakemake.wait_job("PENDING")
    kill(snakemake)
    done = settle(snakemake, "--grace-s=1")
    assert f"cancelling job {job}: unsatisfiable" in done.stdout
    last = "STATUS=ok; reason=1 jobs were open, 1 cancelled; removed the stale lock"
    assert done.stdout.splitlines()[-1] == last
    snakemake.cluster.wait_state(job, "CANCELLED")


@cluster
def test_wait_has_a_limit_and_then_nothing_is_started(slurm: Testbed, tmp_path: Path) -> None:
    run = SnakemakeRun(slurm, tmp_path)
    name = "foreign_00000000-0000-0000-0000-000000000000"
    job = slurm.submit("sleep 60", f"--job-name={name}", f"--chdir={tmp_path}")
    done = settle(run, "--limit-min=0.01", "--", "snakemake")
    assert done.returncode == 1
    assert "still there after 0.01 min; expected their end; nothing was started" in done.stdout
    assert slurm.job(job)["JobState"] == "RUNNING"
    assert settle(run, "--prefix=mine").stdout.splitlines() == [
        "STATUS=ok; reason=0 jobs were open, 0 cancelled; no lock was left"
    ]


@cluster
@pytest.mark.slow_cluster
def test_without_an_answer_from_slurm_nothing_is_started(slurm: Testbed, tmp_path: Path) -> None:
    run = SnakemakeRun(slurm, tmp_path)
    slurm.stop_controller()
    done = settle(run, "--limit-min=0.01", "--", "snakemake")
    assert done.returncode == 1
    assert done.stdout.startswith("waiting for an answer from SLURM\n")
    assert "SNAKEMAKE" not in done.stdout + done.stderr


def settle(run: SnakemakeRun, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perfproof.cluster.resume", *options],
        cwd=run.directory,
        env=run.env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_snakemake_finishes_what_is_incomplete() -> None:
    assert resumed(["python", "-m", "snakemake", "x"])[3:] == ["--rerun-incomplete", "x"]
    assert resumed(["/bin/snakemake", "--ri"]) == ["/bin/snakemake", "--ri"]
    with pytest.raises(InputError, match="expected -- snakemake"):
        resumed(["make", "report"])


def test_directory_is_the_one_that_the_command_names() -> None:
    assert directory_of(["snakemake", "-d", "there"]) == Path("there")
    assert directory_of(["snakemake", "--directory=there"]) == Path("there")
    assert directory_of(["snakemake", "perf_report"]) == Path()
