"""Findings about durations that cannot be right: none, too long, or over the next event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perfproof.schema.traces import Finding
from perfproof.traces.context import Context
from perfproof.traces.finding import Severity, finding, grade
from perfproof.traces.grouping import Groups
from perfproof.traces.intervals import Ints, union, union_length_by

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
    keyed = Groups(gpu.stream)
    covered = union_length_by(keyed.of_row, gpu.start, gpu.end, len(keyed))
    over = int(gpu.duration.sum() - covered.sum())
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
