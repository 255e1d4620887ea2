from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.training.attempts import alone, set_aside


def tree(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def test_each_attempt_keeps_its_own_files(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "steps").mkdir(parents=True)
    (run / "steps" / "launch.log").write_text("the workflow's")
    assert set_aside(run) is None
    (run / "traces").mkdir()
    (run / "traces" / "rank0").write_text("first")
    (run / "manifest.json").write_text("first")
    assert set_aside(run) == 1
    assert set_aside(run) is None
    (run / "manifest.json").write_text("second")
    (run / "recipe.json").write_text("asked")
    assert set_aside(run, keep=[run / "recipe.json"]) == 2
    assert tree(run) == {
        "recipe.json",
        "steps/launch.log",
        "attempts/1/traces/rank0",
        "attempts/1/manifest.json",
        "attempts/2/manifest.json",
    }
    assert (run / "attempts" / "2" / "manifest.json").read_text() == "second"


def test_one_launch_at_a_time(tmp_path: Path) -> None:
    with alone(tmp_path):
        with pytest.raises(InputError, match=rf"is alive \(process {os.getpid()} on "):
            alone(tmp_path).__enter__()
        assert set_aside(tmp_path) is None
    with alone(tmp_path):
        pass


def test_a_file_system_without_locks_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuses)
    with alone(tmp_path):
        assert (tmp_path / "steps" / "launch.lock").read_text().startswith("process ")
