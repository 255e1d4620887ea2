"""`STATUS.txt`: what happened in a loop, one line an event, only ever appended to."""

from __future__ import annotations

import fcntl
import os
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path


def append(path: Path, events: Sequence[str], now: datetime, step: str | None = None) -> None:
    """Write a step's `events` (`EVENT key=value …`) as lines `<UTC time> EVENT key=value …`.

    The events of a step are one block. A block that is there is not written again; the rest of one
    that is there in part, at the end of the file, is. Safe for several writers (flock). `step`
    names the step in each line: two chains of a loop may be told of the same run.
    """
    if not events:
        return
    block = [_one_line(_of_step(event, step)) for event in events]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        before = stream.read()
        new = block[_written(_events_of(before), block) :]
        # A line that a killed writer left without its end stays as it is, on its own.
        start = "\n" if before and not before.endswith(b"\n") else ""
        if new:
            stamp = now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            text = start + "".join(f"{stamp} {event}\n" for event in new)
            stream.write(text.encode("utf-8", "backslashreplace"))
            stream.flush()
            os.fsync(stream.fileno())


def _of_step(event: str, step: str | None) -> str:
    name, _, values = event.partition(" ")
    return event if step is None else f"{name} step={step} {values}"


def _events_of(content: bytes) -> list[str]:
    """The events of whole lines, without their times."""
    lines = content.decode("utf-8", "replace").split("\n")[:-1]
    return [line.partition(" ")[2] for line in lines]


def _written(there: Sequence[str], block: Sequence[str]) -> int:
    """How many events of the block need no writing: all of them, or those that end the file."""
    size = len(block)
    if any(list(there[i : i + size]) == list(block) for i in range(len(there) - size + 1)):
        return size
    ends = (n for n in range(size - 1, 0, -1) if list(there[-n:]) == list(block[:n]))
    return next(ends, 0)


def _one_line(event: str) -> str:
    """Without line breaks, control characters and marks that change the direction of text."""
    plain = (" " if unicodedata.category(c)[0] in "CZ" else c for c in event)
    return " ".join("".join(plain).split())
