"""`dataloader`: how long the training thread waits for its next batch."""

from __future__ import annotations

import numpy as np

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, us
from perfproof.traces.intervals import Intervals, Ints, clip, difference_length, union

COLUMNS = (
    "thread",
    "count",
    "total_us",
    "fraction_of_window",
    "gpu_idle_us",
    "gpu_idle_fraction_of_window",
)
_PREFIX = "enumerate(DataLoader)#"


def dataloader_marks(context: Context) -> Ints:
    """Indices of loader annotations: on the thread that carries the steps, else on any."""
    marks = context.trace.marks
    named = [i for i, name in enumerate(context.trace.names) if name.startswith(_PREFIX)]
    chosen = np.isin(marks.name, named)
    if context.steps.thread is not None:
        chosen &= marks.thread == context.steps.thread
    return np.flatnonzero(chosen)


def loader_time(context: Context) -> Intervals:
    """When a thread that counts is in the loader, cut to the window."""
    marks, window, at = context.trace.marks, context.window, dataloader_marks(context)
    return clip(union(marks.start[at], marks.end[at]), window.start, window.end)


def dataloader(context: Context) -> Rows:
    """One row a thread; GPU-idle = no GPU event of the window runs meanwhile."""
    marks, window = context.trace.marks, context.window
    at = dataloader_marks(context)
    at = at[(marks.end[at] > window.start) & (marks.start[at] < window.end)]
    rows = []
    for thread in np.unique(marks.thread[at]).tolist():
        mine = at[marks.thread[at] == thread]
        flat = clip(union(marks.start[mine], marks.end[mine]), window.start, window.end)
        alone = difference_length(flat, context.window_busy.every)
        rows.append(
            (
                context.trace.threads[thread],
                int(mine.size),
                us(flat.length()),
                window.share(flat.length()),
                us(alone),
                window.share(alone),
            )
        )
    return Rows(COLUMNS, sorted(rows))
