"""All outputs of a loop, from its step files, through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.files import read_record
from perfproof.levers.story.record import Loop
from perfproof.levers.story.write import write_all
from perfproof.schema.decisions import Decisions, DoNotRetry
from tests.levers.story.conftest import RICH
from tests.levers.story.loops import play, write_steps

NAMES = ["best.yaml", "decisions.json", "do_not_retry.json", "foms.csv", "foms.png", "story.md"]


def _write(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfproof.levers.story.write", *arguments]
    environment = {"PYTHONPATH": str(root / "scripts"), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="session")
def steps(tmp_path_factory: pytest.TempPathFactory, rich_spec: Any) -> Path:
    """The step files of the rich loop."""
    folder = tmp_path_factory.mktemp("loop")
    explored, confirmed = play(RICH, rich_spec)
    write_steps(explored, folder / "steps")
    write_steps(confirmed, folder / "complete" / "confirm")
    (folder / "last").write_text(f"{explored[-1].step} {confirmed[-1].step}")
    return folder


def test_command_line_writes_what_the_function_writes(
    root: Path, steps: Path, rich: Loop, tmp_path: Path
) -> None:
    last, confirmed = (steps / "last").read_text().split()
    done = _write(
        root,
        *("--loop", str(steps / "steps" / f"{last}.json")),
        *("--confirm", str(steps / "complete" / "confirm" / f"{confirmed}.json")),
        *("--ending", "complete", "--out-dir", str(tmp_path / "cli")),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("STATUS=ok; reason=bf16 gains")
    write_all(rich, tmp_path / "function")
    assert sorted(path.name for path in (tmp_path / "cli").iterdir()) == NAMES
    for name in NAMES:
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "function" / name).read_bytes()


def test_records_are_valid_and_name_no_place(rich: Loop, tmp_path: Path) -> None:
    write_all(rich, tmp_path)
    read_record(tmp_path / "decisions.json", Decisions)
    read_record(tmp_path / "do_not_retry.json", DoNotRetry)
    for name in NAMES[:-2]:
        assert str(tmp_path) not in (tmp_path / name).read_text()
    assert str(tmp_path) not in (tmp_path / "story.md").read_text()


def test_a_bad_step_file_is_one_line(root: Path, tmp_path: Path) -> None:
    bad = tmp_path / "3.json"
    bad.write_text(json.dumps({"step": 3}))
    done = _write(root, "--loop", str(bad), "--ending", "x", "--out-dir", str(tmp_path / "out"))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith(f"STATUS=fail; reason={bad}: spec: found")
    assert not (tmp_path / "out").exists()
