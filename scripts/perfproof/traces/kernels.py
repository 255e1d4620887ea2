"""`kernel_summary`, `kernel_groups` and `top_kernels`: which kernels take the time."""

from __future__ import annotations

import numpy as np

from perfproof.traces import groups
from perfproof.traces.calls import call_category
from perfproof.traces.categories import category
from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, largest_first, us
from perfproof.traces.grouping import Groups
from perfproof.traces.intervals import Ints, alone_length_by, union_length_by
from perfproof.traces.model import KERNEL
from perfproof.traces.timeline import span

TOP = 50
_OP, _CALL, _NOTHING = 0, 1, 2

SUMMARY_COLUMNS = (
    "Parent op category",
    "Parent cpu_op",
    "Kernel name",
    "Kernel stream",
    "Kernel duration (µs)_sum",
    "Kernel duration (µs)_count",
    "Kernel duration (µs)_mean",
    "Kernel duration (µs)_min",
    "Kernel duration (µs)_max",
    "Percent of kernels time (%)",
    "Percent of total time (%)",
)
GROUP_COLUMNS = (
    "group",
    "count",
    "sum_us",
    "union_us",
    "fraction_of_window",
    "alone_us",
    "alone_fraction_of_window",
    "name_regex",
    "not_regex",
)
TOP_COLUMNS = (
    "kernel",
    "count",
    "sum_us",
    "union_us",
    "fraction_of_window",
    "alone_us",
    "alone_fraction_of_window",
    "mean_us",
    "group",
)


def kernel_summary(context: Context) -> Rows:
    """All kernels of the file, linked or not, by CPU operation, name and stream."""
    gpu = context.gpu
    kernels = np.flatnonzero(gpu.kind == KERNEL)
    keyed = Groups(
        *_parents(context, kernels),
        gpu.name[kernels],
        gpu.stream[kernels],
        context.group[kernels],
    )
    duration = gpu.duration[kernels]
    total = span(context.all_busy)
    columns = (
        keyed.sum(duration).tolist(),
        keyed.count.tolist(),
        keyed.min(duration).tolist(),
        keyed.max(duration).tolist(),
    )
    rows = [
        (
            *_parent(context, kind, parent, group),
            context.name(name),
            stream if stream >= 0 else None,
            us(time),
            count,
            us(time) / count,
            us(least),
            us(most),
            100 * time / max(int(duration.sum()), 1),
            100 * time / max(total, 1),
        )
        for kind, parent, name, stream, group, time, count, least, most in zip(
            *(key.tolist() for key in keyed.keys), *columns, strict=True
        )
    ]
    return Rows(SUMMARY_COLUMNS, largest_first(rows, 4, 2, 1, 3))


def _parents(context: Context, events: Ints) -> tuple[Ints, Ints]:
    """Kind and interned name of what launched each event: operation, else call, else nothing."""
    op, call = context.links.op[events], context.links.call[events]
    kind = np.where(op >= 0, _OP, np.where(call >= 0, _CALL, _NOTHING))
    name = np.where(op >= 0, context.op_name(op), context.call_name(call))
    return kind, np.where(kind == _NOTHING, -1, name)


def _parent(context: Context, kind: int, name: int, group: int) -> tuple[str | None, str | None]:
    if kind == _NOTHING:
        return None, None
    text = context.name(name)
    return (category(text, groups.NAMES[group]) if kind == _OP else call_category(text)), text


def kernel_groups(context: Context) -> Rows:
    """GPU events of the window by kernel group, with the patterns that select them.

    Alone = while no GPU event of another group runs.
    """
    chosen, size = context.window_events, len(groups.NAMES)
    group = context.group[chosen.index]
    count = np.bincount(group, minlength=size)
    time = np.zeros(size, np.int64)
    np.add.at(time, group, context.gpu.duration[chosen.index])
    covered = union_length_by(group, chosen.start, chosen.end, size)
    alone = alone_length_by(group, chosen.start, chosen.end, size)
    rows = [
        (
            name,
            int(count[index]),
            us(int(time[index])),
            us(int(covered[index])),
            context.window.share(int(covered[index])),
            us(int(alone[index])),
            context.window.share(int(alone[index])),
            groups.GROUPS[name],
            groups.not_regex(name),
        )
        for index, name in enumerate(groups.NAMES)
    ]
    return Rows(GROUP_COLUMNS, rows)


def top_kernels(context: Context) -> Rows:
    """The kernels of the window that cover most time, at most 50.

    Alone = while no other GPU event runs, be it a kernel of another name, a copy or a fill.
    """
    chosen = context.window_events
    kernel = context.gpu.kind[chosen.index] == KERNEL
    keyed = Groups(
        context.gpu.name[chosen.index], context.group[chosen.index], kernel.astype(np.int64)
    )
    covered = union_length_by(keyed.of_row, chosen.start, chosen.end, len(keyed))
    alone = alone_length_by(keyed.of_row, chosen.start, chosen.end, len(keyed))
    time, count = keyed.sum(context.gpu.duration[chosen.index]), keyed.count
    names = [context.name(name) for name in keyed.keys[0].tolist()]
    order = [at for at in _largest(covered, names) if keyed.keys[2][at]]
    rows = [
        (
            context.name(int(keyed.keys[0][at])),
            int(count[at]),
            us(int(time[at])),
            us(int(covered[at])),
            context.window.share(int(covered[at])),
            us(int(alone[at])),
            context.window.share(int(alone[at])),
            us(int(time[at])) / int(count[at]),
            groups.NAMES[int(keyed.keys[1][at])],
        )
        for at in order[:TOP]
    ]
    return Rows(TOP_COLUMNS, rows)


def _largest(values: Ints, names: list[str]) -> list[int]:
    """Indices by falling value, ties by name."""
    return sorted(range(len(names)), key=lambda at: (-int(values[at]), names[at]))
