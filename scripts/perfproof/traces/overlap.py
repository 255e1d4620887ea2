"""`host_overlap`: which activities of the host fill the same time of an idle GPU.

A synchronisation inside a copy and the copy are one wait, not two.
"""

from __future__ import annotations

import numpy as np

from perfproof.traces.calls import call_spans
from perfproof.traces.context import Context
from perfproof.traces.cpu_ops import own_spans
from perfproof.traces.csvfile import Row, Rows, us
from perfproof.traces.dataloader import loader_time
from perfproof.traces.idle import host_idle, host_late
from perfproof.traces.intervals import Intervals, Ints, intersection, intersection_length, union_by

COLUMNS = (
    "kind",
    "name",
    "other_kind",
    "other_name",
    "gpu_idle_us",
    "shared_us",
    "shared_fraction",
)
LEAST_OF_WINDOW = 0.02
LEAST_SHARED = 0.5

_Key = tuple[str, str]


def host_overlap(context: Context) -> Rows:
    """Pairs of which the first shares at least half of its GPU-idle time with the other.

    Over calls, operations (own time) and late launches that fill 2 % of the window or more.
    Without GPU events the loader is one more, and all time counts.
    """
    parts = sorted(_parts(context).items())
    rows = [
        row
        for one in parts
        for other in parts
        if other is not one and (row := _row(*one, *other)) is not None
    ]
    return Rows(COLUMNS, rows)


def _row(key: _Key, mine: Intervals, other: _Key, theirs: Intervals) -> Row | None:
    shared, length = intersection_length(mine, theirs), mine.length()
    if shared < LEAST_SHARED * length:
        return None
    return (*key, *other, us(length), us(shared), shared / length)


def _parts(context: Context) -> dict[_Key, Intervals]:
    """Flat GPU-idle time of each activity that is worth a row."""
    idle = host_idle(context)
    found = _named("cpu_op", context, *own_spans(context), idle)
    if len(context.gpu):
        found |= _named("call", context, *call_spans(context), idle)
        found["host_late", ""] = host_late(context)
    else:
        found["dataloader", ""] = loader_time(context)
    least = LEAST_OF_WINDOW * context.window.duration
    return {key: part for key, part in found.items() if 0 < part.length() >= least}


def _named(
    kind: str, context: Context, name: Ints, spans: Intervals, idle: Intervals
) -> dict[_Key, Intervals]:
    keys, group = np.unique(name, return_inverse=True)
    owner, flat = union_by(group, *spans)
    return {
        (kind, context.name(key)): intersection(
            Intervals(flat.start[owner == index], flat.end[owner == index]), idle
        )
        for index, key in enumerate(keys.tolist())
    }
