from __future__ import annotations

import time
from pathlib import Path

import pytest

from perfproof.training.stall import Watchdog


@pytest.fixture
def watch(tmp_path: Path) -> Watchdog:
    """Ten seconds, rank 0 has reported, one look made."""
    started = tmp_path / "rank0.json"
    started.touch()
    made = Watchdog(tmp_path, 10.0, started)
    assert made.stalled_s(time.monotonic()) is None
    return made


def later(watch: Watchdog, seconds: float) -> float | None:
    return watch.stalled_s(time.monotonic() + seconds)


def test_silence_is_counted_from_the_last_growth(watch: Watchdog) -> None:
    assert later(watch, 9) is None
    with (watch.run_dir / "rank0.json").open("a") as stream:
        stream.write("more")
    assert later(watch, 12) is None
    assert later(watch, 21) is None
    silent_s = later(watch, 23)
    assert silent_s is not None
    assert 10 < silent_s < 12


@pytest.mark.parametrize("name", ["log_rank7.txt", "traces/rank3.json", "deep/er/steps/1.txt"])
def test_any_new_file_is_a_sign_of_life(watch: Watchdog, name: str) -> None:
    path = watch.run_dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert later(watch, 11) is None
    assert later(watch, 22)


@pytest.mark.parametrize(
    "name", ["steps/launch.log", "attempts/1/log_rank0.txt", "telemetry/samples-a1.jsonl"]
)
def test_files_of_the_workflow_and_of_collectors_are_not_the_runs(
    watch: Watchdog, name: str
) -> None:
    path = watch.run_dir / name
    path.parent.mkdir(parents=True)
    path.touch()
    assert later(watch, 11)


def test_compiling_and_loading_may_be_silent_for_longer(watch: Watchdog) -> None:
    (watch.run_dir / "rank0.json").unlink()
    assert later(watch, 1) is None
    assert later(watch, 30) is None
    assert later(watch, 32)


def test_a_job_that_was_suspended_did_not_hang(watch: Watchdog) -> None:
    assert later(watch, 9) is None
    assert later(watch, 900) is None
    assert later(watch, 909) is None
    assert later(watch, 911)


def test_a_file_that_goes_away_while_it_looks_is_no_fault(watch: Watchdog) -> None:
    (watch.run_dir / "dangling").symlink_to("gone")
    assert later(watch, 11) is None
