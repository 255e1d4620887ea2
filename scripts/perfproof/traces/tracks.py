"""Tracks that an annotated trace gets: steps, idle gaps by cause, exposed work, claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from perfproof.schema.claims import VerifiedClaim
from perfproof.traces.context import Context
from perfproof.traces.idle import CAUSES, idle_gaps
from perfproof.traces.intervals import Intervals, gaps, intersection, join
from perfproof.traces.steps_table import COLUMNS as STEP_COLUMNS
from perfproof.traces.steps_table import steps

PROCESS = "perfproof"
_FIRST_PID = 1_000_000_000
_KEPT_PID = 2**31 - 1


@dataclass(frozen=True)
class Slice:
    """A span of time on a track, in ns of the trace's clock."""

    name: str
    start: int
    end: int
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Track:
    """One row in the viewer; its slices do not overlap."""

    name: str
    slices: list[Slice]


def tracks(context: Context, claims: Iterable[VerifiedClaim]) -> list[Track]:
    """All tracks that have anything to show, in the order they appear."""
    found = [
        Track("steps", list(_steps(context))),
        Track("GPU idle, by cause", list(_idle(context))),
        Track("exposed communication", _named("exposed communication", _exposed_comm(context))),
        Track("exposed memcpy", _named("exposed memcpy", _exposed_memcpy(context))),
        *(_claim(context, claim) for claim in claims),
    ]
    return [track for track in found if track.slices]


def _steps(context: Context) -> Iterator[Slice]:
    """Each step with its row of the table `steps`; one that overlaps the next ends there."""
    starts, ends = context.steps.start.tolist(), context.steps.end.tolist()
    stops = [*starts[1:], *ends[-1:]]
    for row, start, end, stop in zip(steps(context).rows, starts, ends, stops, strict=True):
        args = dict(zip(STEP_COLUMNS, row, strict=True))
        yield Slice(f"step {row[0]}", start, min(end, stop), args)


def _idle(context: Context) -> Iterator[Slice]:
    if not context.window_events.index.size:
        return
    free, cause = idle_gaps(context)
    for start, end, at in zip(free.start.tolist(), free.end.tolist(), cause.tolist(), strict=True):
        yield Slice(CAUSES[at], start, end)


def _exposed_comm(context: Context) -> Intervals:
    return _without(context, context.window_busy.comm, context.window_busy.compute)


def _exposed_memcpy(context: Context) -> Intervals:
    busy = context.window_busy
    return _without(context, busy.memcpy, join(busy.compute, busy.comm))


def _without(context: Context, flat: Intervals, other: Intervals) -> Intervals:
    return intersection(flat, gaps(other, context.window.start, context.window.end))


def _named(name: str, flat: Intervals) -> list[Slice]:
    pairs = zip(flat.start.tolist(), flat.end.tolist(), strict=True)
    return [Slice(name, start, end) for start, end in pairs]


def _claim(context: Context, claim: VerifiedClaim) -> Track:
    """A claim over the window that it is about."""
    window = context.window
    args = {
        "verdict": claim.verdict.value,
        "class": claim.bottleneck_class.value,
        "metric": claim.metric,
        "params": claim.params,
        "value": claim.value,
        "unit": claim.unit,
        "verifier_value": claim.verifier_value,
        "tolerance": claim.tolerance,
        "share_of_step": claim.share_of_step,
        "note": claim.note,
        "remedy": claim.remedy,
        "author": claim.author,
    }
    span = [Slice(claim.statement, window.start, window.end, args)] if window.duration else []
    return Track(f"{claim.id} {claim.verdict.value}: {claim.bottleneck_class.value}", span)


def free_pid(used: Iterable[Any]) -> int:
    """A process id that no event of the trace has."""
    taken = set(used) | {str(pid) for pid in used}
    return next(
        pid for pid in range(_FIRST_PID, _KEPT_PID) if pid not in taken and str(pid) not in taken
    )


def trace_events(found: list[Track], pid: int) -> list[bytes]:
    """The tracks as trace events: metadata of the process and its rows, then their slices."""
    events = [
        _meta("process_name", pid, 0, {"name": PROCESS}),
        _meta("process_sort_index", pid, 0, {"sort_index": -1}),
    ]
    for tid, track in enumerate(found, start=1):
        events.append(_meta("thread_name", pid, tid, {"name": track.name}))
        events.append(_meta("thread_sort_index", pid, tid, {"sort_index": tid}))
        for one in track.slices:
            events += _slice(one, pid, tid)
    return events


def _meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args})


def _slice(one: Slice, pid: int, tid: int) -> list[bytes]:
    if one.end <= one.start:
        return []
    event = {
        "ph": "X",
        "cat": PROCESS,
        "name": one.name,
        "ts": _us(one.start),
        "dur": _us(one.end - one.start),
        "pid": pid,
        "tid": tid,
    }
    return [msgspec.json.encode({**event, "args": one.args} if one.args else event)]


def _us(nanoseconds: int) -> Raw:
    """Exact decimal microseconds: a float would lose nanoseconds of absolute times."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), 1000)
    return Raw(f"{sign}{whole}.{rest:03d}".encode())
