"""Nesting of CPU operations: which operation is innermost at a time, and the time of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perfproof.traces.intervals import Ints
from perfproof.traces.model import Ops


class _Thread(NamedTuple):
    """Operations of one thread in order of start, the enclosing one first."""

    op: Ints  # into the trace's operations
    start: Ints
    end: Ints
    parent: Ints  # position in this thread, -1 for none


class Segments(NamedTuple):
    """Stretches of time in which one operation is the innermost of its thread."""

    op: Ints
    start: Ints
    end: Ints


class OpTree:
    """The operations of a trace, nested by time on each thread."""

    def __init__(self, ops: Ops) -> None:
        self._threads: dict[int, _Thread] = {}
        order = np.lexsort((np.arange(len(ops)), -ops.end, ops.start, ops.thread))
        threads, begin = np.unique(ops.thread[order], return_index=True)
        for thread, op in zip(threads.tolist(), np.split(order, begin[1:]), strict=False):
            start, end = ops.start[op], ops.end[op]
            self._threads[thread] = _Thread(op, start, end, _parents(end))

    def threads(self) -> list[int]:
        """Threads that ran operations."""
        return sorted(self._threads)

    def innermost(self, thread: Ints, time: Ints) -> Ints:
        """For each (thread, time): the innermost operation open then, -1 for none.

        An operation is open from its start to its end, both included: a launch may end with it.
        """
        found = np.full(time.shape, -1, np.int64)
        for one in np.unique(thread).tolist():
            if (ops := self._threads.get(one)) is not None:
                chosen = np.flatnonzero(thread == one)
                at = _open_at(ops, time[chosen], ops.end)
                found[chosen] = np.where(at >= 0, ops.op[at], -1)
        return found

    def parents(self) -> Ints:
        """For each operation the one that encloses it directly, -1 for none."""
        size = sum(ops.op.size for ops in self._threads.values())
        found = np.full(size, -1, np.int64)
        for ops in self._threads.values():
            found[ops.op] = np.where(ops.parent >= 0, ops.op[ops.parent], -1)
        return found

    def own_time(self, thread: int) -> Segments:
        """The thread's time, cut into stretches that belong to the innermost operation."""
        ops = self._threads[thread]
        edge = np.unique(np.concatenate((ops.start, ops.end)))
        at = _open_at(ops, edge[:-1], ops.end - 1)
        inside = at >= 0
        return Segments(ops.op[at[inside]], edge[:-1][inside], edge[1:][inside])


def _parents(end: Ints) -> Ints:
    """Nearest earlier operation that ends no sooner: the enclosing one."""
    ends = end.tolist()
    parent = [-1] * len(ends)
    stack: list[int] = []
    for position, here in enumerate(ends):
        while stack and ends[stack[-1]] < here:
            stack.pop()
        if stack:
            parent[position] = stack[-1]
        stack.append(position)
    return np.array(parent, dtype=np.int64)


def _open_at(ops: _Thread, time: Ints, last: Ints) -> Ints:
    """Position of the innermost operation with start <= time <= last, -1 for none."""
    at = np.searchsorted(ops.start, time, side="right") - 1
    late = np.flatnonzero((at >= 0) & (last[at] < time))
    while late.size:
        at[late] = ops.parent[at[late]]
        late = late[(at[late] >= 0) & (last[at[late]] < time[late])]
    return at
