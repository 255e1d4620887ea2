"""The finding `stray_gpu_events`: events far from the others make a device look idle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perfproof.schema.traces import Finding
from perfproof.traces.context import Context
from perfproof.traces.finding import finding
from perfproof.traces.intervals import Intervals, Ints, Mask
from perfproof.traces.timeline import span

_GAP = 0.25  # share of the span from which a gap parts events from the others
_MANY = 0.1  # share of the GPU events that is no small rest
_MOST = 0.5


class _Core(NamedTuple):
    """The bulk of the GPU events, and the gaps (their begins and ends) that part it from the rest.

    Times in ns.
    """

    start: int
    end: int
    gaps: list[tuple[int, int]]


def stray(context: Context) -> Iterator[Finding]:
    """Events beyond large gaps that more than double the span, however many they are.

    A gap is a real pause where the host took it too: the events behind it were launched after it
    began, by a profiled step or in great number.
    """
    flat, gpu = context.all_busy.every, context.gpu
    whole, real = span(context.all_busy), gpu.duration > 0
    core = _core(flat, gpu.start[real])
    trimmed = core.end - core.start
    away = real & ((gpu.start < core.start) | (gpu.start >= core.end))
    if whole <= 2 * trimmed or _is_pause(context, away, core.gaps):
        return
    longest = max(end - begin for begin, end in core.gaps)
    text = (
        f"{int(away.sum())} of {len(gpu)} GPU events lie {longest / 1e6} ms from the others and "
        f"stretch the span from {trimmed / 1e6} to {whole / 1e6} ms"
    )
    yield finding("stray_gpu_events", "bad", int(away.sum()), text)


def _core(flat: Intervals, starts: Ints) -> _Core:
    """Cut at the largest gap and keep the side with more events, while the gap is large."""
    gaps: list[tuple[int, int]] = []
    while flat.start.size > 1:
        free = flat.start[1:] - flat.end[:-1]
        at = int(free.argmax())
        if int(free[at]) <= _GAP * int(flat.end[-1] - flat.start[0]):
            break
        gaps.append((int(flat.end[at]), int(flat.start[at + 1])))
        edges = np.searchsorted(starts, (flat.start[0], gaps[-1][1], flat.end[-1]))
        kept = slice(None, at + 1) if 2 * edges[1] >= edges[0] + edges[2] else slice(at + 1, None)
        flat = Intervals(flat.start[kept], flat.end[kept])
    if not flat.start.size:
        return _Core(0, 0, gaps)
    return _Core(int(flat.start[0]), int(flat.end[-1]), gaps)


def _is_pause(context: Context, away: Mask, gaps: list[tuple[int, int]]) -> bool:
    launched, start = context.launched[away], context.gpu.start[away]
    agree = context.links.linked[away]
    for begin, end in gaps:
        agree &= (start < end) | (launched >= begin)
    if agree.mean() < _MOST:
        return False
    in_steps = (context.steps.of(launched) >= 0).mean()
    return bool(in_steps >= _MOST or agree.size > _MANY * len(context.gpu))
