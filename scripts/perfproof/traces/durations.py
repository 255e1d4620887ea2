"""Findings about durations that cannot be right: none, too long, or over the next event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perfproof.schema.traces import Finding
from perfproof.traces.context import Context
from perfproof.traces.finding import Severity, finding, grade
from perfproof.traces.grouping import Groups
from perfproof.traces.intervals import Ints, Mask, union, union_length_by
from perfproof.traces.model import GpuEvents

_ZERO_SHARE = 0.01  # of the GPU events
_COARSE_NS = 1000  # clocks of 2021 and before count whole microseconds
_BUSY_WARN, _BUSY_BAD = 0.01, 0.05  # share of busy time that zero durations may hide
_FEW = 2  # events of which none can be told to be odd
_OVERLAP_WARN, _OVERLAP_BAD = 0.001, 0.05


def zero_severity(context: Context) -> Severity:
    """How bad events of 0 ns are: many are harmless only where the clock is that coarse.

    The greatest common divisor of the other durations is the clock's tick; each 0 hides less
    than one.
    """
    zero = context.trace.gpu_faults.zero_duration
    if zero <= _ZERO_SHARE * context.trace.gpu_recorded:
        return "info"
    real = context.gpu.duration[context.gpu.duration > 0]
    tick = int(np.gcd.reduce(real)) if real.size else 0
    if tick < _COARSE_NS:
        return "bad"
    return grade(zero * tick / context.all_busy.every.length(), _BUSY_WARN, _BUSY_BAD)


class _Overrun(NamedTuple):
    """What events run on after the next one of their stream has begun, in ns."""

    total: int
    longest: int
    busy: int  # covered time if each event ended when the next one begins


def same_stream_overlap(context: Context) -> Iterator[Finding]:
    """Events of one stream should not overlap: much of it means corrupt durations.

    Compared with busy time that the suspects do not inflate themselves.
    """
    gpu = context.gpu
    over = stream_overlap(gpu)
    if not over:
        return
    run = _overrun(gpu.stream, gpu.start, gpu.end)
    share = max(over, run.total) / max(run.busy, 1)
    text = f"events of one stream overlap by {over / 1e3} us"
    if run.total:
        text += f" and run up to {run.longest / 1e3} us into their successors"
    text += f", {100 * share:.3g} % of busy time"
    severity = grade(share, _OVERLAP_WARN, _OVERLAP_BAD)
    yield finding("same_stream_overlap", severity, over / 1e3, text)


def stream_overlap(gpu: GpuEvents) -> int:
    """Time in ns that events of one stream share with others of it."""
    keyed = Groups(gpu.stream)
    covered = union_length_by(keyed.of_row, gpu.start, gpu.end, len(keyed))
    return int(gpu.duration.sum() - covered.sum())


def impossible(gpu: GpuEvents) -> Mask:
    """Which events run on until two later ones of their stream have ended.

    One successor may overlap: launches that depend on each other by program, jitter of the clock.
    """
    order, _ = _next_starts(gpu)
    stream, start, end = gpu.stream[order], gpu.start[order], gpu.end[order]
    found = np.zeros(len(gpu), np.bool_)
    if order.size > _FEW:
        same = (stream[2:] == stream[:-2]) & (start[1:-1] > start[:-2])
        found[order[:-2]] = same & (end[:-2] >= end[1:-1]) & (end[:-2] >= end[2:])
    return found


def clipped_busy(gpu: GpuEvents) -> int:
    """Busy time in ns when events of impossible duration end where the next one begins."""
    end = gpu.end.copy()
    order, after = _next_starts(gpu)
    cut = impossible(gpu)[order]
    end[order[cut]] = after[cut]
    return union(gpu.start, end).length()


def _next_starts(gpu: GpuEvents) -> tuple[Ints, Ints]:
    """Events that cover time, by stream and start, and the start of the one behind each."""
    real = np.flatnonzero(gpu.end > gpu.start)
    order = real[np.lexsort((gpu.start[real], gpu.stream[real]))]
    start = gpu.start[order]
    return order, np.append(start[1:], start[-1:])


def impossible_duration(context: Context) -> Iterator[Finding]:
    """Events that cannot have lasted so long: what follows them on their stream ended first."""
    gpu = context.gpu
    count = int(impossible(gpu).sum())
    if count:
        less = context.all_busy.every.length() - clipped_busy(gpu)
        share = less / max(context.all_busy.every.length(), 1)
        text = (
            f"{count} GPU events run on until two later ones of their stream have ended; cut where "
            f"the next begins, busy time would be {less / 1e3} us less"
        )
        severity = grade(share, _OVERLAP_WARN, _OVERLAP_BAD)
        yield finding("impossible_duration", severity, count, text)


def _overrun(stream: Ints, start: Ints, end: Ints) -> _Overrun:
    """Events of no duration are left out; of those that start together none is a successor."""
    real = np.flatnonzero(end > start)
    order = real[np.lexsort((start[real], stream[real]))]
    stream, start, end = stream[order], start[order], end[order]
    begins = np.flatnonzero(
        np.concatenate(([True], (np.diff(stream) != 0) | (np.diff(start) != 0)))
    )
    place = np.searchsorted(begins, np.arange(start.size), side="right")
    after = begins[np.minimum(place, begins.size - 1)]
    followed = (place < begins.size) & (stream[after] == stream)
    limit = np.where(followed, np.minimum(end, start[after]), end)
    excess = end - limit
    return _Overrun(int(excess.sum()), int(excess.max()), union(start, limit).length())


def endless_event(context: Context) -> Iterator[Finding]:
    """A few events that run on after all else that is recorded, and more than double the span."""
    gpu, trace = context.gpu, context.trace
    if len(gpu) <= _FEW:
        return
    few = max(1, len(gpu) // 10)
    begin = int(gpu.start.min())
    stop = max(int(np.partition(gpu.end, -few - 1)[-few - 1]), int(gpu.start.max()))
    for host in (trace.calls, trace.ops, trace.marks):
        stop = int(host.end.max(initial=stop))
    endless = gpu.end - stop > stop - begin
    if count := int(endless.sum()):
        name = context.name(int(gpu.name[endless][0]))[:80]
        text = (
            f"{count} GPU events (the first: {name}) run up to {(int(gpu.end.max()) - stop) / 1e6} "
            f"ms on after all else that is recorded, which takes {(stop - begin) / 1e6} ms"
        )
        yield finding("endless_gpu_event", "bad", count, text)
