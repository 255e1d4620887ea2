from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfproof.training.probe import node_line, readable, writable, writable_inside


def test_a_healthy_node(tmp_path: Path) -> None:
    tests = {"home": lambda: readable(tmp_path), "shared:/x": lambda: writable(tmp_path, "n1")}
    line = node_line("n1", tests, 10)
    assert re.fullmatch(r"NODE_HEALTH n1 home=OK shared=OK time=\d+\.\d{3}", line)
    assert list(tmp_path.iterdir()) == []


def test_what_is_broken_is_named_with_its_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    tests = {
        "home": lambda: readable(tmp_path / "home"),
        "shared:/a": lambda: writable(tmp_path / "gone", "n1"),
        "shared:/b": lambda: writable(file, "n1"),
        "data:/d": lambda: readable(file),
    }
    line = node_line("n1", tests, 10)
    assert line.startswith("NODE_HEALTH n1 home=FAIL shared=FAIL data=OK time=")
    assert line.endswith(" failed=home:ENOENT,shared:/a:ENOENT,shared:/b:ENOTDIR")


def test_a_test_that_hangs_is_a_fault_of_its_own(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    begun_s = time.monotonic()
    words = ["--run-dir", str(tmp_path), "--data-path", str(pipe), "--limit-s", "0.5"]
    done = subprocess.run(
        [sys.executable, "-m", "perfproof.training.probe", *words], capture_output=True, text=True
    )
    assert time.monotonic() - begun_s < 20
    assert " data=FAIL " in done.stdout
    assert f"failed=data:{pipe}:no_answer" in done.stdout


@pytest.mark.parametrize(
    ("body", "fault"), [('exec "$@"', ""), ("exit 255", "exit code 255"), ("sleep 60", "no answer")]
)
def test_the_container_must_write_and_read_its_bind(tmp_path: Path, body: str, fault: str) -> None:
    box = tmp_path / "box"
    box.write_text(f"#!/bin/sh\nshift 1\n{body}\n")
    box.chmod(0o755)
    assert writable_inside(f"{box} exec", tmp_path, "n1", 1.0) == fault
    assert [path.name for path in tmp_path.iterdir()] == ["box"]


def test_no_container_runtime_is_a_fault(tmp_path: Path) -> None:
    assert writable_inside("/no/apptainer exec", tmp_path, "n1", 1.0) == "ENOENT"
