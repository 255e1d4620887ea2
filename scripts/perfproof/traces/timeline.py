"""`gpu_timeline` and `window_timeline`: where the device's time went, as unions of intervals."""

from __future__ import annotations

import numpy as np

from perfproof.traces.context import Busy, Context
from perfproof.traces.csvfile import Rows
from perfproof.traces.intervals import difference_length, intersection_length, union

COLUMNS = ("type", "time ms", "percent")


def gpu_timeline(context: Context) -> Rows:
    """Over all GPU events of the file, linked or not; total is first start to last end."""
    return timeline_rows(context.all_busy, span(context.all_busy))


def window_timeline(context: Context) -> Rows:
    """Over the window and the GPU events that belong to it."""
    return timeline_rows(context.window_busy, context.window.duration)


def span(busy: Busy) -> int:
    """From the first start to the last end of the busy time, in ns."""
    every = busy.every
    return int(every.end[-1] - every.start[0]) if every.start.size else 0


def exposed_comm(busy: Busy) -> int:
    """Communication while nothing computes, in ns."""
    return difference_length(busy.comm, busy.compute)


def exposed_memcpy(busy: Busy) -> int:
    """Copies while nothing computes or communicates, in ns."""
    covered = union(
        np.concatenate((busy.compute.start, busy.comm.start)),
        np.concatenate((busy.compute.end, busy.comm.end)),
    )
    return busy.memcpy.length() - intersection_length(busy.memcpy, covered)


def timeline_rows(busy: Busy, total: int) -> Rows:
    """The rows of a timeline over `total` ns; none where there was no time."""
    if not total:
        return Rows(COLUMNS, [])
    times = {
        "computation_time": busy.compute.length(),
        "exposed_comm_time": exposed_comm(busy),
        "exposed_memcpy_time": exposed_memcpy(busy),
        "busy_time": busy.every.length(),
        "idle_time": total - busy.every.length(),
        "total_time": total,
        "total_comm_time": busy.comm.length(),
        "total_memcpy_time": busy.memcpy.length(),
    }
    rows = [(name, time / 1e6, 100 * time / total) for name, time in times.items()]
    return Rows(COLUMNS, rows)
