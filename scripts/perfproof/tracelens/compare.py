"""TraceLens's `gpu_timeline` beside ours, and what makes them differ."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from perfproof.core.errors import InputError
from perfproof.schema.base import Reason
from perfproof.schema.tracelens import RankBackend, TimelineRow
from perfproof.schema.traces import RankTrace, Table

Timeline = Mapping[str, float]
TIMELINE = "gpu_timeline"
LINKED = "linked_timeline"
# Of the span: TraceLens reads time stamps as float64, which moves them by up to 0.25 µs.
TOLERANCE = 1e-3
_BUSY = ("busy_time", "idle_time", "total_time")


def read_timeline(root: Path, table: Table) -> dict[str, float]:
    """Milliseconds by row of a table with TraceLens's columns. Raises InputError."""
    path = root / table.file
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return {row["type"]: float(row["time ms"]) for row in csv.DictReader(stream)}
    except FileNotFoundError:
        raise InputError(table.file, "no such file", "a timeline") from None
    except (KeyError, TypeError, ValueError, csv.Error):
        expected = "columns 'type' and 'time ms', with a number in each row"
        raise InputError(table.file, "no timeline", expected) from None


def held_against(
    rank: RankTrace,
    ours: Timeline,
    linked: Timeline | None,
    theirs: Timeline,
    tables: dict[str, Table],
) -> RankBackend:
    """One rank's rows by each definition, and which of them explains TraceLens's numbers."""
    agreement = _agreement(ours, linked, theirs)
    return RankBackend(
        rank=rank.rank,
        file=rank.file,
        tables=tables,
        timeline=[_row(name, value, linked, theirs) for name, value in ours.items()],
        agreement=agreement,
        explanation=_explained(agreement, rank, ours, theirs),
    )


def without_numbers(
    rank: RankTrace, ours: Timeline, linked: Timeline | None, why: str
) -> RankBackend:
    """A rank that TraceLens gave no numbers for."""
    return RankBackend(
        rank=rank.rank,
        file=rank.file,
        tables={},
        timeline=[_row(name, value, linked, {}) for name, value in ours.items()],
        agreement="none",
        explanation=why,
    )


def _row(name: str, value: float, linked: Timeline | None, theirs: Timeline) -> TimelineRow:
    both = {"linked_ms": linked.get(name) if linked else None, "tracelens_ms": theirs.get(name)}
    reasons = {key: Reason.NOT_RECORDED for key, number in both.items() if number is None}
    return TimelineRow(name=name, all_ms=value, reasons=reasons, **both)


def _agreement(
    ours: Timeline, linked: Timeline | None, theirs: Timeline
) -> Literal["same", "definition", "classes", "other"]:
    sides = [("same", ours), *([("definition", linked)] if linked else [])]
    if exact := next((name for name, side in sides if _agree(side, theirs, tuple(side))), None):
        return "same" if exact == "same" else "definition"
    return "classes" if any(_agree(side, theirs, _BUSY) for _, side in sides) else "other"


def _agree(side: Timeline, theirs: Timeline, rows: tuple[str, ...]) -> bool:
    allowed = TOLERANCE * side.get("total_time", 0.0)
    return all(name in theirs and abs(side[name] - theirs[name]) <= allowed for name in rows)


def _explained(agreement: str, rank: RankTrace, ours: Timeline, theirs: Timeline) -> str:
    if agreement == "same":
        return "TraceLens counts the same GPU events: its times are ours within 0.1 % of the span."
    if agreement == "definition":
        return (
            f"TraceLens counts GPU events that an ac2g arrow joins to their launch "
            f"({rank.unlinked_gpu_events} of {rank.gpu_events} have no recorded launch at all): "
            "over the events that have one, our times are its within 0.1 % of the span."
        )
    if agreement == "classes":
        moved = theirs.get("total_comm_time", 0.0) - ours.get("total_comm_time", 0.0)
        return (
            f"Busy and idle agree, classes do not: communication differs by {moved:+.3f} ms. "
            "TraceLens takes for communication only kernels whose name holds nccl, rccl or "
            "cross_device_reduce."
        )
    return (
        "Neither all GPU events nor those that an ac2g arrow joins to their launch give "
        "TraceLens's times; the cause is not known."
    )
