"""Real launches with a real sampler: it runs beside the ranks and ends with them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from perfproof.artifacts.discover import discover
from perfproof.core.config import load_cluster
from perfproof.core.series import EXPORT_FILE, Series, read_export
from perfproof.schema.run import Role, State
from perfproof.training import embedded
from perfproof.training.collectors.collection import Collection
from perfproof.training.collectors.loading import load
from perfproof.training.launch import Job, launch
from perfproof.training.nodes import host_name
from perfproof.training.resolve import resolve
from perfproof.training.workload import Command
from tests.training.tiny_runs import Run, end_launch, start_launch, write_config

Launched = Callable[[str, str], Run]


def exported(run: Run) -> list[Series]:
    return read_export(run.directory / "telemetry" / EXPORT_FILE)


def check_collected(run: Run) -> None:
    """The manifest says so, the file holds it, and nothing else is left."""
    record = run.manifest.telemetry
    assert (record.collector, record.problems) == ("sampler", [])
    assert record.file == f"telemetry/{EXPORT_FILE}"
    (node,) = record.nodes
    assert (node.node, node.state) == (host_name(), "collected")
    assert node.samples >= 1
    names = {series.metric["__name__"] for series in exported(run)}
    assert {"rmsjob_info", "omnistat_host_mem_total_bytes"} <= names
    assert f"telemetry: sampler on {host_name()}: collected, {node.samples} samples" in run.output
    left = {path.name for path in (run.directory / "telemetry").iterdir()}
    assert left == {EXPORT_FILE, "collector.txt"}
    roles = {path.name: role for path, role in discover(run.directory).files}
    assert roles[EXPORT_FILE] is Role.TELEMETRY
    assert "collector.txt" not in roles


def test_a_completed_run(launched: Launched) -> None:
    run = launched("hydragnn", "ranks_2")
    check_collected(run)
    jobs = [s for s in exported(run) if s.metric["__name__"] == "rmsjob_info"]
    assert [s.metric["jobid"] for s in jobs] == ["hydragnn/ranks_2"]
    assert run.manifest.telemetry.job_id == "hydragnn/ranks_2"
    assert run.output.splitlines()[-1].startswith("STATUS=ok")


def test_no_gpu_series_on_a_machine_without(launched: Launched) -> None:
    run = launched("hydragnn", "ranks_2")
    said = run.manifest.telemetry.nodes[0].said
    names = {series.metric["__name__"] for series in exported(run)}
    if "libnvidia-ml" in said and "amdsmi" in said:
        assert not [name for name in names if name.startswith("rocm_")]


def test_a_failed_run(launched: Launched) -> None:
    run = launched("hydragnn", "compile_eager+no_profile")
    assert run.manifest.state is State.FAILED
    check_collected(run)


def test_a_run_at_its_time_limit(
    tiny_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = (sys.executable, "-c", "import time; time.sleep(600)")
    monkeypatch.setattr(embedded, "command", lambda *_: Command(argv=argv, shown=("python",)))
    monkeypatch.setattr("perfproof.training.launch.time_limit_s", lambda *_: 0.5)
    resolved = resolve(tiny_root, model="orbit2", trial="baseline", cluster="here", nodes=1)
    job = Job(resolved, load_cluster(tiny_root, "here"), tmp_path / "run", "orbit2/baseline")
    manifest = launch(job, os.environ)
    assert manifest.state is State.TIMEOUT
    assert [node.state for node in manifest.telemetry.nodes] == ["collected"]
    assert read_export(tmp_path / "run" / "telemetry" / EXPORT_FILE)


def test_a_run_ended_by_a_signal(cancelled: Run) -> None:
    assert cancelled.manifest.state is State.CANCELLED
    check_collected(cancelled)


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_a_killed_launcher_leaves_samples_and_no_sampler(tmp_path: Path) -> None:
    root = write_config(tmp_path, {"sample_interval_s": 0.1})
    process = start_launch(root, tmp_path, "orbit2", "endless")
    until((tmp_path / "run" / "rank0.json").exists)
    children = psutil.Process(process.pid).children(recursive=True)
    found = [c for c in children if "perfproof.training.collectors.sampler" in c.cmdline()]
    assert len(found) == 1
    process.kill()
    process.communicate(timeout=30)
    until(lambda: not any(is_alive(child) for child in children))
    ticks = load(tmp_path / "run" / "telemetry").ticks()
    assert ticks[host_name()] > 1
    assert "collected on" in (tmp_path / "run/telemetry/collector.txt").read_text()


def test_a_sampler_that_dies_is_told_of_and_the_run_goes_on(tmp_path: Path) -> None:
    root = write_config(tmp_path, {"sample_interval_s": 0.1})
    process = start_launch(root, tmp_path, "orbit2", "endless")
    until((tmp_path / "run" / "rank0.json").exists)
    children = psutil.Process(process.pid).children(recursive=True)
    (found,) = [c for c in children if "perfproof.training.collectors.sampler" in c.cmdline()]
    found.kill()
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    record = end_launch(process, tmp_path).manifest.telemetry
    assert record.nodes[0].state == "died"
    assert record.nodes[0].samples >= 1
    assert record.file is not None


def collection(run_dir: Path, root: Path, **keys: Any) -> Collection:

    write_config(root, keys)
    return Collection(
        load_cluster(root, "here"), run_dir, [host_name()], "job", "float32", os.environ
    )


def broken(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the collector's command be a small program of the test's own."""
    monkeypatch.setattr(
        "perfproof.training.collectors.collection.command",
        lambda *_: [sys.executable, "-c", code],
    )


def test_off_leaves_nothing(tmp_path: Path) -> None:
    # Plain YAML reads `off` as false.
    made = collection(tmp_path / "run", tmp_path, telemetry=False)
    with made:
        pass
    assert made.record.collector == "off"
    assert not (tmp_path / "run").exists()


def test_one_that_does_not_start_is_an_error_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, "raise SystemExit('no such driver')")
    made = collection(tmp_path / "run", tmp_path)
    with pytest.raises(ValueError, match=r"did not start on .*no such driver.*telemetry_required"):
        made.__enter__()
    made = collection(tmp_path / "again", tmp_path, telemetry_required=False)
    with made:
        pass
    assert made.record.nodes[0].state == "failed"
    assert "no such driver" in made.record.problems[0]
    assert made.record.file is None


def test_a_fault_at_the_end_does_not_hide_the_runs_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfproof.training.collectors.collection.export", lambda *_: 1 / 0)
    made = collection(tmp_path / "run", tmp_path)
    with pytest.raises(KeyError), made:
        raise KeyError("the run's own")
    assert made.record.problems == ["ZeroDivisionError: division by zero"]
    assert made._process is not None
    assert made._process.poll() is not None


def test_nobody_waits_for_a_start_that_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, "import time; time.sleep(600)")
    made = collection(tmp_path / "run", tmp_path)
    made.is_over = lambda: True
    with made:
        pass
    assert made._process is not None
    assert made._process.poll() is not None
