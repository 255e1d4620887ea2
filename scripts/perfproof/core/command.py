"""Programs of others, bounded: no input, a time limit, and nothing of theirs left running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_TAIL_BYTES = 65_536


@dataclass(frozen=True)
class Ended:
    """How a program ended: exit code (None: out of time), and the ends of what it printed."""

    code: int | None
    stdout: str
    stderr: str

    @property
    def last_line(self) -> str:
        """The last line of standard output that is not blank."""
        return _last(self.stdout)

    @property
    def last_error(self) -> str:
        """The last line of standard error that is not blank."""
        return _last(self.stderr)


def run_bounded(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], timeout_s: float
) -> Ended:
    """Run `command` and wait; after `timeout_s` its process group is killed.

    What it prints goes to files, so that it cannot block on us nor fill our memory. Raises OSError
    where it cannot be started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True,
        )  # fmt: skip
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout_s)
        # Also after a good end: children that it left behind end with it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return Ended(code, _tail(out), _tail(err))


def end(process: subprocess.Popen[bytes], number: int, grace_s: float) -> None:
    """Ask a process to end by a signal, wait, and kill it when it does not."""
    process.send_signal(number)
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL_BYTES))
    return stream.read().decode("utf-8", "replace")


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
