"""What still runs in a working directory, and whose lock it is."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from perfproof.cluster import orphans, resume
from perfproof.core.errors import InputError
from tests.cluster.processes import running, wait_until
from tests.cluster.testbed import Testbed


@contextmanager
def live(argv: list[str], where: Path, **env: str) -> Iterator[psutil.Popen]:
    process = psutil.Popen(argv, cwd=where, env=os.environ | env, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        orphans.end_process(process.pid)
        process.kill()
        process.wait(timeout=10)


def kinds(where: Path) -> list[str]:
    return sorted(process.kind for process in orphans.processes(where))


def sleeper(path: Path) -> Path:
    """A Python program of this name that does nothing."""
    path.write_text("import time\ntime.sleep(60)\n")
    return path


def test_snakemake_is_found_and_its_inner_ones_are_local_jobs(tmp_path: Path) -> None:
    program = str(sleeper(tmp_path / "snakemake"))
    with live([sys.executable, program, "--jobs", "2"], tmp_path):
        wait_until(lambda: kinds(tmp_path) == ["snakemake"], 10, "snakemake")
    with live([sys.executable, program, "--mode", "subprocess"], tmp_path):
        wait_until(lambda: kinds(tmp_path) == ["local job"], 10, "local job")


def test_submission_and_shell_command_are_found(tmp_path: Path) -> None:
    program = sleeper(tmp_path / "sbatch")
    command = ["/bin/bash", "-c", "set -euo pipefail; sleep 60; true"]
    with live([sys.executable, str(program)], tmp_path), live(command, tmp_path):
        wait_until(lambda: kinds(tmp_path) == ["local job", "submission"], 10, "both")


def test_others_are_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = str(sleeper(tmp_path / "snakemake"))
    with (
        live([sys.executable, program], elsewhere),
        live([sys.executable, program], tmp_path, SLURM_JOB_ID="7"),
        live(["tail", "-f", "/dev/null", "snakemake"], tmp_path),
        live(["/bin/bash", "-c", "sleep 60; true"], tmp_path),
    ):
        wait_until(lambda: kinds(elsewhere) == ["snakemake"], 10, "snakemake")
        assert kinds(tmp_path) == []


def test_process_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with live(["/bin/bash", "-c", "sleep 61; true"], tmp_path) as shell:
        wait_until(lambda: len(shell.children()) == 1, 10, "child")
        (child,) = shell.children()
        orphans.end_process(shell.pid)
        wait_until(lambda: not running(child), 10, "the child's end")


def locked_by(host: str, where: Path) -> None:
    log = where / ".snakemake" / "log" / "2026-01-31T120000.000001.snakemake.log"
    lock = where / ".snakemake" / "locks" / "0.output.lock"
    for path, text in ((log, f"\nSNAKEMAKE\n  Host: {host}\n"), (lock, "report.html\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    os.utime(lock, (1800000000, 1800000000))
    later = log.with_name("2030-01-31T120000.000001.snakemake.log")
    later.write_text("  Host: refused\n")


def test_lock_of_another_host_is_refused(tmp_path: Path) -> None:
    locked_by("login2", tmp_path)
    with pytest.raises(InputError, match=r"taken on login2; expected this command on login2"):
        orphans.check_host(tmp_path)


def test_lock_of_this_host_is_removed(tmp_path: Path) -> None:
    locked_by(platform.node(), tmp_path)
    orphans.check_host(tmp_path)
    assert orphans.is_locked(tmp_path)
    orphans.unlock(tmp_path)
    assert not orphans.is_locked(tmp_path)
    assert (tmp_path / ".snakemake" / "log").is_dir()


def test_directory_without_lock_belongs_to_nobody(tmp_path: Path) -> None:
    assert not orphans.is_locked(tmp_path)
    orphans.check_host(tmp_path)


def test_one_resume_at_a_time(tmp_path: Path) -> None:
    resume._hold(tmp_path)
    with pytest.raises(InputError, match="held by another resume; expected one at a time"):
        resume._hold(tmp_path)


@pytest.mark.cluster
def test_jobs_of_this_directory_and_prefix(slurm: Testbed, tmp_path: Path) -> None:
    run = "00000000-0000-0000-0000-00000000000"
    here = f"--chdir={tmp_path}"
    comment = "--comment=rule_launch_wildcards_x"
    ours = slurm.submit("sleep 60", f"--job-name=pp_x_{run}1", here, comment)
    bare = slurm.submit("sleep 60", f"--job-name={run}2", here)
    slurm.submit("sleep 60", f"--job-name=pp_x_{run}1", "--chdir=/")
    slurm.submit("sleep 60", "--job-name=pp_x_mine", here)
    slurm.wait_state(slurm.submit("true", f"--job-name=pp_x_{run}1", here), "COMPLETED")
    found = orphans.jobs(tmp_path, "")
    assert found is not None
    assert [job.job_id for job in found] == [ours, bare]
    assert found[0].rule == "launch"
    assert [job.job_id for job in orphans.jobs(tmp_path, "pp_x") or []] == [ours]
