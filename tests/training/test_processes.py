from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from perfproof.training.processes import ask_for_stacks, handles, start

SLEEPS = "import time; time.sleep(600)"
# Starts the second program the same way, then waits to be killed.
STARTER = """
import os, sys, time
from pathlib import Path
from perfproof.training.processes import start
child = start([sys.executable, "-c", sys.argv[1]], os.environ, Path(sys.argv[2]), int(sys.argv[3]))
print(child.pid, flush=True)
time.sleep(600)
"""
LISTENS = """
import faulthandler, signal, time
faulthandler.register(signal.SIGUSR1)
print("ready", flush=True)
time.sleep(600)
"""


def soon(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
    return done()


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_dies_with_a_killed_starter(tmp_path: Path, number: int) -> None:
    words = [sys.executable, "-c", STARTER, SLEEPS, str(tmp_path / "out"), str(int(number))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        assert not gone(pid)
        starter.kill()
        assert soon(lambda: gone(pid))


def test_output_is_added(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.write_text("before\n")
    words = [sys.executable, "-c", "import sys; print(1); print(2, file=sys.stderr)"]
    assert start(words, os.environ, output).wait(20) == 0
    assert sorted(output.read_text().split()) == ["1", "2", "before"]


def test_only_who_listens_is_asked_for_its_stack(tmp_path: Path) -> None:
    """SIGUSR1 would end the other one."""
    output = tmp_path / "out"
    listens = start([sys.executable, "-c", LISTENS], os.environ, output)
    sleeps = start([sys.executable, "-c", SLEEPS], os.environ, tmp_path / "other")
    try:
        assert soon(lambda: output.read_text() == "ready\n")
        assert handles(listens.pid, signal.SIGUSR1)
        assert not handles(sleeps.pid, signal.SIGUSR1)
        assert ask_for_stacks([listens.pid, sleeps.pid, 2**22 + 1]) == 1
        assert soon(lambda: "most recent call first" in output.read_text())
        assert sleeps.poll() is None
        assert listens.poll() is None
    finally:
        for process in (listens, sleeps):
            process.kill()
            process.wait()
