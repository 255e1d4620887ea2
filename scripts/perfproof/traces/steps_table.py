"""`steps`: each profiled step with the GPU work it launched."""

from __future__ import annotations

import re

from perfproof.traces.calls import calls_named, launch_calls
from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, us
from perfproof.traces.dataloader import dataloader_marks
from perfproof.traces.intervals import Intervals, Mask, clip, union
from perfproof.traces.timeline import exposed_comm, exposed_memcpy

COLUMNS = (
    "step",
    "start_ns",
    "duration_us",
    "gpu_events",
    "launches",
    "busy_us",
    "compute_us",
    "comm_us",
    "exposed_comm_us",
    "memcpy_us",
    "exposed_memcpy_us",
    "dataloader_us",
    "stream_sync_us",
)
_STREAM_SYNC = re.compile("^(?:cuda|hip)StreamSynchronize")


def steps(context: Context) -> Rows:
    """One row a step; busy times are unions over the GPU events that the step launched."""
    step_of_event = context.steps.of(context.launched)
    calls = context.trace.calls
    step_of_launch = context.steps.of(calls.start[launch_calls(context)])
    marks = dataloader_marks(context)
    loading = union(context.trace.marks.start[marks], context.trace.marks.end[marks])
    syncs = calls_named(context, _STREAM_SYNC)
    syncing = union(calls.start[syncs], calls.end[syncs])
    rows = [
        (
            number,
            int(context.steps.start[index]),
            us(int(context.steps.end[index] - context.steps.start[index])),
            int((step_of_event == index).sum()),
            int((step_of_launch == index).sum()),
            *_busy(context, step_of_event == index),
            _within(context, loading, index),
            _within(context, syncing, index),
        )
        for index, number in enumerate(context.steps.number)
    ]
    return Rows(COLUMNS, rows)


def _busy(context: Context, chosen: Mask) -> list[float]:
    busy = context.busy(chosen)
    times = (
        busy.every.length(),
        busy.compute.length(),
        busy.comm.length(),
        exposed_comm(busy),
        busy.memcpy.length(),
        exposed_memcpy(busy),
    )
    return [us(time) for time in times]


def _within(context: Context, flat: Intervals, step: int) -> float:
    inside = clip(flat, int(context.steps.start[step]), int(context.steps.end[step]))
    return us(inside.length())
