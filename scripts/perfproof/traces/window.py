"""Steps, and the window that shares refer to.

GPU work belongs to the step that launched it, wherever it runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from perfproof.traces.intervals import Ints, Mask
from perfproof.traces.link import Links
from perfproof.traces.model import GpuEvents, Trace

_STEP = re.compile(r"ProfilerStep#([0-9]{1,18})")
_LONG_STEP = re.compile(r"ProfilerStep#[0-9]{19,}")
Kind = Literal["steps", "gpu_span", "cpu_span", "empty"]


@dataclass(frozen=True)
class Steps:
    """The CPU's ProfilerStep#N annotations, by start, without those inside another one.

    So starts and ends both rise. Where two overlap, the later one owns the time from its start.
    """

    number: list[int]
    start: Ints
    end: Ints
    thread: int | None  # the thread that carries them
    nested: int = 0  # left out: inside another one
    copies: int = 0  # of the nested: with the number of one that is kept
    overlapping: int = 0  # kept, though they begin before the one before has ended
    unreadable: int = 0  # left out: the number has more than 18 digits

    def of(self, time: Ints) -> Ints:
        """Index of the step each time falls in, -1 for none."""
        if not self.number:
            return np.full(time.shape, -1, np.int64)
        at = np.searchsorted(self.start, time, side="right") - 1
        return np.where((at >= 0) & (time < self.end[at]), at, -1)


@dataclass(frozen=True)
class Window:
    """[start, end) of the analysis, and which GPU events count in it."""

    kind: Kind
    start: int
    end: int
    inside: Mask
    host_end: int  # work launched in [start, host_end) counts

    @property
    def duration(self) -> int:
        """Nanoseconds."""
        return self.end - self.start

    def share(self, nanoseconds: int) -> float:
        """Fraction of the window; 0 for an empty window."""
        return nanoseconds / self.duration if self.duration else 0.0


def find_steps(trace: Trace, only: Collection[int] | None = None) -> Steps:
    """The step annotations of the CPU side, on whatever thread: all, or the numbers `only`."""
    numbers = {
        index: int(match[1])
        for index, name in enumerate(trace.names)
        if (match := _STEP.fullmatch(name))
    }
    too_long = [index for index, name in enumerate(trace.names) if _LONG_STEP.fullmatch(name)]
    marks = trace.marks
    found = np.flatnonzero(np.isin(marks.name, list(numbers)) & (marks.end > marks.start))
    at, inside = _outermost(found, marks.start, marks.end)
    if only is not None:
        chosen = [numbers[name] in only for name in marks.name[at].tolist()]
        at = at[np.array(chosen, np.bool_)]
    number = [numbers[name] for name in marks.name[at].tolist()]
    return Steps(
        number=number,
        start=marks.start[at],
        end=marks.end[at],
        thread=int(marks.thread[at[0]]) if at.size else None,
        nested=int(inside.size),
        copies=sum(numbers[name] in number for name in marks.name[inside].tolist()),
        overlapping=int((marks.start[at[1:]] < marks.end[at[:-1]]).sum()),
        unreadable=int(np.isin(marks.name, too_long).sum()),
    )


def _outermost(index: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The spans that lie in no other one, by start, and the rest; of equals the first counts."""
    order = index[np.lexsort((-end[index], start[index]))]
    reach = np.maximum.accumulate(end[order])
    outer = np.concatenate(([True], end[order][1:] > reach[:-1]))[: order.size]
    return order[outer], order[~outer]


def launch_times(trace: Trace, links: Links) -> Ints:
    """When each GPU event was launched; its own start where no launch is recorded."""
    if not len(trace.calls):
        return trace.gpu.start
    return np.where(links.linked, trace.calls.start[links.call], trace.gpu.start)


def find_window(trace: Trace, steps: Steps, launched: Ints) -> Window:
    """The window by the rules of `docs/tables.md`."""
    gpu = trace.gpu
    none = np.zeros(len(gpu), np.bool_)
    if steps.number:
        begin, stop = int(steps.start[0]), int(steps.end.max())
        inside = (launched >= begin) & (launched < stop)
        if inside.any():
            return Window("steps", begin, max(stop, int(gpu.end[inside].max())), inside, stop)
    if len(gpu):
        return _gpu_span(gpu)
    if steps.number:
        return Window("cpu_span", begin, stop, none, stop)
    if len(trace.ops):
        begin, stop = int(trace.ops.start.min()), int(trace.ops.end.max())
        return Window("cpu_span", begin, stop, none, stop)
    return Window("empty", 0, 0, none, 0)


def _gpu_span(gpu: GpuEvents) -> Window:
    end = int(gpu.end.max())
    return Window("gpu_span", int(gpu.start.min()), end, np.ones(len(gpu), np.bool_), end)
