"""Starting processes that do not outlive whoever started them, and asking them for their stacks."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from perfproof.core.parent import die_with_parent

_MASK = re.compile(r"^Sig(?:Blk|Cgt):\s*([0-9a-f]+)$", re.MULTILINE)


def start(
    argv: Sequence[str], env: Mapping[str, str], output: Path, death_signal: int = signal.SIGTERM
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own; all that it prints is added to `output`.

    It gets `death_signal` when this process dies, also by SIGKILL. Of the main thread only: the
    kernel watches the thread that started it.
    """
    parent = os.getpid()
    with output.open("ab") as stream:
        return subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(death_signal, parent),
        )


def ask_for_stacks(pids: Iterable[int]) -> int:
    """SIGUSR1 for those that have a handler (ranks print their stacks) or pass it on (srun).

    Others would die of it. The number of processes asked.
    """
    asked = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            if handles(pid, signal.SIGUSR1):
                os.kill(pid, signal.SIGUSR1)
                asked += 1
    return asked


def handles(pid: int, number: int) -> bool:
    """Whether a process catches a signal, or blocks it to wait for it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return any(int(mask, 16) & 1 << (number - 1) for mask in _MASK.findall(status))
