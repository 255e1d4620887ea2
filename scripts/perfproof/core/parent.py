"""Processes that do not outlive whoever started them."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: int = signal.SIGKILL, parent: int | None = None) -> None:
    """Let the kernel send this process a signal when its parent dies; kept when it executes.

    With `parent`, its number, a parent that is dead already counts too.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)
