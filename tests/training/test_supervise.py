from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from perfproof.schema.run import State
from perfproof.training.stall import Watchdog
from perfproof.training.supervise import Ending, Limits, Supervisor

STUBBORN = """
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""


def run(
    code: str,
    output: Path,
    *words: str,
    limit_s: float = 60.0,
    grace_s: float = 5,
    watchdog: Watchdog | None = None,
) -> Ending:
    with Supervisor(grace_s=grace_s) as supervisor:
        limits = Limits(limit_s, watchdog)
        return supervisor.run([sys.executable, "-c", code, *words], os.environ, output, limits)


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("print('done')", Ending(State.COMPLETED, 0, "exit")),
        ("raise SystemExit(3)", Ending(State.FAILED, 3, "exit")),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            Ending(State.FAILED, 137, "signal 9"),
        ),
    ],
)
def test_own_endings(code: str, ending: Ending, tmp_path: Path) -> None:
    assert run(code, tmp_path / "out") == ending


def test_own_output_is_kept(tmp_path: Path) -> None:
    run("import sys; print('a'); print('b', file=sys.stderr)", tmp_path / "out")
    assert sorted((tmp_path / "out").read_text().split()) == ["a", "b"]


def test_time_limit(tmp_path: Path) -> None:
    ending = run("import time; time.sleep(600)", tmp_path / "out", limit_s=0.2)
    assert ending == Ending(State.TIMEOUT, 143, "time limit of 0 s")


def test_ranks_that_ignore_the_signal_are_killed_with_their_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def cancel() -> None:
        while not (pid_file.is_file() and pid_file.read_text()):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=cancel).start()
    ending = run(STUBBORN, tmp_path / "out", str(pid_file), grace_s=1)
    assert ending == Ending(State.CANCELLED, 137, "signal 15")
    child = int(pid_file.read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"


HANGS = """
import faulthandler, signal, time
faulthandler.register(signal.SIGUSR1)
print("step 1", flush=True)
def waits_for_the_others():
    time.sleep(600)
waits_for_the_others()
"""


def test_a_run_that_writes_nothing_is_ended_and_says_where_it_hangs(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").touch()
    output = tmp_path / "launcher.txt"
    ending = run(HANGS, output, watchdog=Watchdog(tmp_path, 1.0, tmp_path / "rank0.json"))
    assert (ending.state, ending.exit_code) == (State.FAILED, 143)
    assert ending.ended_by == "hang: nothing written for 1 s"
    said = output.read_text()
    assert said.startswith("step 1\nperfproof: hang: nothing written for 1 s; the run is ended\n")
    assert "in waits_for_the_others" in said


def test_a_run_that_writes_goes_on(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").touch()
    code = "import time\nfor _ in range(8): time.sleep(0.3); print(1, flush=True)"
    ending = run(
        code, tmp_path / "launcher.txt", watchdog=Watchdog(tmp_path, 1.0, tmp_path / "rank0.json")
    )
    assert ending == Ending(State.COMPLETED, 0, "exit")


def test_a_signal_before_the_start_starts_nothing(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        os.kill(os.getpid(), signal.SIGINT)
        ending = supervisor.run(["/no/such/program"], os.environ, tmp_path / "out", Limits(60))
    assert ending == Ending(State.CANCELLED, None, "signal 2")
    assert not (tmp_path / "out").exists()


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Supervisor():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
