"""`cpu_ops`: host time by CPU operation, its own (self) time told apart from what it calls."""

from __future__ import annotations

import numpy as np

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, largest_first, us
from perfproof.traces.grouping import Groups
from perfproof.traces.idle import host_idle
from perfproof.traces.intervals import Intervals, Ints, shared_length_by, union_length_by
from perfproof.traces.optree import Segments

COLUMNS = (
    "op",
    "count",
    "total_us",
    "self_us",
    "self_fraction_of_window",
    "gpu_idle_us",
    "gpu_idle_fraction_of_window",
)
_AUTOGRAD = "autograd::engine::evaluate_function"


def cpu_ops(context: Context) -> Rows:
    """Operations of the step thread and the autograd threads, cut to the window.

    total_us and self_us are sums; all else counts time once where threads overlap. Without steps
    all threads count. GPU-idle is the part of the own time in which no GPU event of the window runs
    and the training thread is not in the loader; all of it without GPU events.
    """
    ops, window = context.trace.ops, context.window
    threads = _threads(context)
    inside = np.isin(ops.thread, threads) & (ops.end > window.start) & (ops.start < window.end)
    chosen = np.flatnonzero(inside)
    keyed = Groups(ops.name[chosen])
    length = np.minimum(ops.end[chosen], window.end) - np.maximum(ops.start[chosen], window.start)
    own = _own_segments(context, threads)
    group = np.searchsorted(keyed.keys[0], ops.name[own.op])
    self_sum = np.zeros(len(keyed), np.int64)
    np.add.at(self_sum, group, own.end - own.start)
    covered = union_length_by(group, own.start, own.end, len(keyed))
    idle = shared_length_by(group, own.start, own.end, len(keyed), host_idle(context))
    columns = (keyed.count, keyed.sum(length), self_sum, covered, idle)
    share = window.share
    rows = [
        (context.name(name), count, us(total), us(alone), share(once), us(free), share(free))
        for name, count, total, alone, once, free in zip(
            keyed.keys[0].tolist(), *(column.tolist() for column in columns), strict=True
        )
    ]
    return Rows(COLUMNS, largest_first(rows, 3, 0))


def own_spans(context: Context) -> tuple[Ints, Intervals]:
    """Name and time of each stretch of own time in the window."""
    own = _own_segments(context, _threads(context))
    return context.op_name(own.op), Intervals(own.start, own.end)


def autograd_names(context: Context) -> list[int]:
    """Interned names of the operations that only threads of autograd run."""
    names = enumerate(context.trace.names)
    return [index for index, name in names if name.startswith(_AUTOGRAD)]


def _threads(context: Context) -> list[int]:
    ops = context.trace.ops
    if context.steps.thread is None:
        return context.links.tree.threads()
    threads = np.unique(ops.thread[np.isin(ops.name, autograd_names(context))]).tolist()
    return sorted({context.steps.thread, *threads})


def _own_segments(context: Context, threads: list[int]) -> Segments:
    """Own time of all operations of these threads, cut to the window."""
    tree, window = context.links.tree, context.window
    known = set(tree.threads())
    parts = [tree.own_time(thread) for thread in threads if thread in known]
    if not parts:
        return Segments(*(np.empty(0, np.int64) for _ in range(3)))
    op, start, end = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    start, end = np.maximum(start, window.start), np.minimum(end, window.end)
    kept: Ints = np.flatnonzero(end > start)
    return Segments(op[kept], start[kept], end[kept])
