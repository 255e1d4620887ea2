"""Run the ranks to their end, whatever the end is: exit, signal, time limit, hang."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import psutil

from perfproof.schema.run import State
from perfproof.training.processes import ask_for_stacks, start
from perfproof.training.stall import Watchdog

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_POLL_S = 0.05
# What ranks get to write their stacks; on other nodes a signal takes a moment to arrive.
_STACKS_S = 2.0
HANG = "hang"


@dataclass(frozen=True)
class Ending:
    """How a run ended. `exit_code` is None where the ranks never started."""

    state: State
    exit_code: int | None
    ended_by: str


@dataclass(frozen=True)
class Limits:
    """What ends ranks that do not end themselves. `death_signal`: when this process is killed."""

    time_s: float
    watchdog: Watchdog | None = None
    death_signal: int = signal.SIGTERM


@dataclass
class Supervisor:
    """While entered, takes the signals that would end this process and forwards them to the ranks.

    `grace_s` is what the ranks get to end themselves before they are killed.
    """

    grace_s: float = 10.0
    signal_number: int | None = None
    _process: subprocess.Popen[bytes] | None = None
    _previous: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for number in _FORWARDED:
            self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process and self._process.poll() is None:
            self._stop(self._process, signal.SIGTERM)
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], output: Path, limits: Limits
    ) -> Ending:
        """Start `argv` in its own process group and wait; what it prints itself goes to `output`.

        The ranks' own output is elsewhere (their wrapper sees to it).
        """
        if self.signal_number is not None:
            return self.cancelled(None)
        process = self._process = start(argv, env, output, limits.death_signal)
        over = self._wait(process, limits)
        if over and over.state is State.FAILED:
            self._tell_of_hang(process, output, over.ended_by)
        if over or self.signal_number is not None:
            self._stop(process, signal.SIGTERM)
        code = _exit_code(process.returncode)
        if self.signal_number is not None:
            return self.cancelled(code)
        return replace(over, exit_code=code) if over else _own_ending(process.returncode, code)

    def cancelled(self, exit_code: int | None) -> Ending:
        """The ending by a signal to this process."""
        return Ending(State.CANCELLED, exit_code, f"signal {self.signal_number}")

    def _wait(self, process: subprocess.Popen[bytes], limits: Limits) -> Ending | None:
        """Wait for the end, a signal or a limit; the ending where it was a limit."""
        deadline = time.monotonic() + limits.time_s
        while process.poll() is None and self.signal_number is None:
            now = time.monotonic()
            if now > deadline:
                return Ending(State.TIMEOUT, None, f"time limit of {limits.time_s:.0f} s")
            silent_s = limits.watchdog.stalled_s(now) if limits.watchdog else None
            if silent_s is not None:
                return Ending(State.FAILED, None, f"{HANG}: nothing written for {silent_s:.0f} s")
            time.sleep(_POLL_S)
        return None

    def _tell_of_hang(self, process: subprocess.Popen[bytes], output: Path, words: str) -> None:
        """Say so where the cause is looked for; let the ranks say where they stand."""
        with contextlib.suppress(OSError), output.open("a") as stream:
            stream.write(f"perfproof: {words}; the run is ended\n")
        pids = [process.pid, *(child.pid for child in _descendants(process.pid))]
        if ask_for_stacks(pids):
            _until(lambda: process.poll() is not None, _STACKS_S)

    def _stop(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Pass the signal on, wait, kill what is left: ranks may sit in sessions of their own."""
        children = _descendants(process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, self.signal_number or number)
        _until(lambda: process.poll() is not None, self.grace_s)
        process.kill()
        process.wait()
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        _until(lambda: all(_is_gone(child) for child in children), self.grace_s)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.signal_number = self.signal_number or number


def _own_ending(returncode: int, code: int) -> Ending:
    if returncode == 0:
        return Ending(State.COMPLETED, 0, "exit")
    return Ending(State.FAILED, code, f"signal {-returncode}" if returncode < 0 else "exit")


def _exit_code(returncode: int) -> int:
    """A death by signal n counts as 128 + n, as shells say it."""
    return returncode if returncode >= 0 else 128 - returncode


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _until(done: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
