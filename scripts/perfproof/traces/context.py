"""One rank's trace with all that its tables share: links, steps, window, classes of GPU events."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perfproof.traces import groups
from perfproof.traces.intervals import Intervals, Ints, Mask, clip, union
from perfproof.traces.link import Links, link
from perfproof.traces.model import MEMCPY, MEMSET, GpuEvents, Trace
from perfproof.traces.window import Steps, Window, find_steps, find_window, launch_times


@dataclass(frozen=True)
class Busy:
    """Covered time by class, each a flat union."""

    every: Intervals
    compute: Intervals
    comm: Intervals
    memcpy: Intervals


@dataclass(frozen=True)
class Chosen:
    """GPU events of the window, their times cut to it."""

    index: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True)
class Context:
    """What tables are made from."""

    rank: int
    trace: Trace
    links: Links
    steps: Steps
    window: Window
    launched: Ints  # launch time of each GPU event
    group: Ints  # index into groups.NAMES of each GPU event

    @property
    def gpu(self) -> GpuEvents:
        """All GPU events of the file."""
        return self.trace.gpu

    def name(self, index: int) -> str:
        """The name behind an interned number."""
        return self.trace.names[index]

    def in_group(self, *names: str) -> Mask:
        """Which GPU events are in one of these groups."""
        return np.isin(self.group, [groups.INDEX[name] for name in names])

    @cached_property
    def comm(self) -> Mask:
        """Communication kernels."""
        return self.in_group("comm")

    @cached_property
    def memcpy(self) -> Mask:
        """Copies."""
        return self.in_group("memcpy")

    def busy(self, chosen: Mask) -> Busy:
        """Unions over the chosen GPU events; compute is all but communication and copies."""

        def flat(mask: Mask) -> Intervals:
            return union(self.gpu.start[mask], self.gpu.end[mask])

        compute = chosen & ~self.comm & ~self.memcpy
        return Busy(
            flat(chosen), flat(compute), flat(chosen & self.comm), flat(chosen & self.memcpy)
        )

    def op_name(self, op: Ints) -> Ints:
        """Interned names of operations; meaningless where `op` is negative."""
        return self.trace.ops.name[op] if len(self.trace.ops) else np.zeros_like(op)

    def call_name(self, call: Ints) -> Ints:
        """Interned names of calls; meaningless where `call` is negative."""
        return self.trace.calls.name[call] if len(self.trace.calls) else np.zeros_like(call)

    @cached_property
    def window_events(self) -> Chosen:
        """The GPU events of the window."""
        index, window = np.flatnonzero(self.window.inside), self.window
        start = np.clip(self.gpu.start[index], window.start, window.end)
        return Chosen(index, start, np.clip(self.gpu.end[index], window.start, window.end))

    @cached_property
    def all_busy(self) -> Busy:
        """Unions over all GPU events of the file."""
        return self.busy(np.ones(len(self.gpu), np.bool_))

    @cached_property
    def window_busy(self) -> Busy:
        """Unions over the GPU events of the window, cut to it."""
        busy, window = self.busy(self.window.inside), self.window
        return Busy(*(clip(part, window.start, window.end) for part in vars(busy).values()))


def make_context(trace: Trace, rank: int, only: Collection[int] | None = None) -> Context:
    """Link, find steps (those with the numbers `only`) and window, class the GPU events."""
    links = link(trace)
    launched = launch_times(trace, links)
    steps = find_steps(trace, only)
    return Context(
        rank=rank,
        trace=trace,
        links=links,
        steps=steps,
        window=find_window(trace, steps, launched),
        launched=launched,
        group=classify(trace),
    )


def classify(trace: Trace) -> Ints:
    """Group of each GPU event: by kind, recorded collective, else by the kernel's name."""
    gpu = trace.gpu
    used, inverse = np.unique(gpu.name, return_inverse=True)
    by_name = [groups.INDEX[groups.group_of(trace.names[name])] for name in used.tolist()]
    group = np.array(by_name, dtype=np.int64)[inverse]
    group[gpu.kind == MEMCPY] = groups.INDEX["memcpy"]
    group[gpu.kind == MEMSET] = groups.INDEX["memset"]
    group[list(gpu.collective)] = groups.INDEX["comm"]
    return group
