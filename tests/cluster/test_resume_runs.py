"""A whole run of the workflow, interrupted: its training is measured once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfproof.core.files import read_record
from perfproof.schema.run import Manifest, State
from tests.cluster.testbed import Testbed
from tests.cluster.workflow_run import WorkflowRun

pytestmark = [pytest.mark.cluster, pytest.mark.slow_cluster]


@pytest.fixture
def workflow(slurm: Testbed, tmp_path: Path, root: Path) -> Iterator[WorkflowRun]:
    run = WorkflowRun(slurm, tmp_path, root)
    yield run
    run.end()


def resume(run: WorkflowRun) -> subprocess.CompletedProcess[str]:
    """The documented command, with the command that was interrupted."""
    assert run._process is not None
    command = run._process.args
    assert isinstance(command, list)
    path = f"{Path(sys.executable).parent}:{run.env['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "perfproof.cluster.resume", "--latency-s=0", "--", *command],
        cwd=run.tree,
        env=run.env | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_training_goes_on_and_the_report_is_made(workflow: WorkflowRun) -> None:
    workflow.perf_report()
    manifest = workflow.run_dir() / "manifest.json"
    workflow.wait_until(manifest.is_file, 120, f"training\n{workflow.log}")
    started_at = read_record(manifest, Manifest).started_at
    os.kill(workflow.pid, signal.SIGKILL)
    workflow.wait(30)
    done = resume(workflow)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(launch)" in done.stdout
    assert list(workflow.jobs().values()) == ["COMPLETED"]
    after = read_record(manifest, Manifest)
    assert (after.state, after.started_at) == (State.COMPLETED, started_at)
    assert (workflow.run_dir() / "combined_report.html").is_file()
