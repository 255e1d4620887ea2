"""The exit code that began a run's end: srun itself returns the largest of all its tasks'."""

from __future__ import annotations

import re
import signal

# `srun: error: a2: task 1: Exited with exit code 134`, `…: tasks 0-3: Killed (core dumped)`.
_TASK = re.compile(
    r"^srun: error: \S+: tasks? [\d,-]+: (?P<how>.+?)( \(core dumped\))?$", re.MULTILINE
)
_CODE = re.compile(r"Exited with exit code (\d+)")
_SIGNALS = {signal.strsignal(number): number for number in signal.Signals}


def first_exit_code(launcher_output: str) -> int | None:
    """The code of the first task that srun reports as failed; None where it reports none."""
    for found in _TASK.finditer(launcher_output):
        code = _CODE.match(found["how"])
        if code:
            return int(code[1])
        number = signal.SIGKILL if found["how"] == "Out Of Memory" else _SIGNALS.get(found["how"])
        if number:
            return 128 + number
    return None
