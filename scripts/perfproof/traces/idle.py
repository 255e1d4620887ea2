"""`idle`: the gaps of the window, by what the launch of the next GPU event was doing meanwhile.

Of idle time, what passes in the data loader is the loader's: `outside_loader` is the rest.
"""

from __future__ import annotations

import numpy as np

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, us
from perfproof.traces.dataloader import loader_time
from perfproof.traces.intervals import Intervals, Ints, Mask, gaps, intersection, join, overlap

COLUMNS = (
    "cause",
    "count",
    "total_us",
    "fraction_of_window",
    "outside_loader_us",
    "outside_loader_fraction_of_window",
)
CAUSES = ("host_late", "in_flight", "queued_before", "unlinked", "tail")


def idle(context: Context) -> Rows:
    """Time in which no GPU event of the window runs, by cause; header only without GPU events."""
    chosen, window = context.window_events, context.window
    if not chosen.index.size:
        return Rows(COLUMNS, [])
    free, cause = idle_gaps(context)
    outside = overlap(host_idle(context), free.start, free.end)
    rows = []
    for index, name in enumerate(CAUSES):
        mine = cause == index
        length, rest = int((free.end - free.start)[mine].sum()), int(outside[mine].sum())
        shares = (us(length), window.share(length), us(rest), window.share(rest))
        rows.append((name, int(mine.sum()), *shares))
    return Rows(COLUMNS, rows)


def host_idle(context: Context) -> Intervals:
    """Where the GPU idles and the training thread is not in the loader.

    Without GPU events the whole window: no GPU sets a floor to what the host may gain.
    """
    window = context.window
    if not len(context.gpu):
        return Intervals(*(np.array([edge], np.int64) for edge in (window.start, window.end)))
    taken = join(context.window_busy.every, loader_time(context))
    return gaps(taken, window.start, window.end)


def host_late(context: Context) -> Intervals:
    """The gaps of cause `host_late`, without what passes in the loader."""
    free, cause = idle_gaps(context)
    late = cause == CAUSES.index("host_late")
    return intersection(Intervals(free.start[late], free.end[late]), host_idle(context))


def idle_gaps(context: Context) -> tuple[Intervals, Ints]:
    """The gaps of the window, and the index into CAUSES of each."""
    free = gaps(context.window_busy.every, context.window.start, context.window.end)
    return free, _causes(context, free.start, free.end)


def _causes(context: Context, start: Ints, end: Ints) -> Ints:
    """Index into CAUSES for each gap [start, end)."""
    event, tail = _next_events(context, end)
    call = context.links.call[event]
    linked = call >= 0
    calls = context.trace.calls
    if not len(calls):
        return np.where(tail, CAUSES.index("tail"), CAUSES.index("unlinked"))
    called, returned = calls.start[call], calls.end[call]
    cause = np.select(
        [tail, ~linked, called >= start, returned > start],
        [CAUSES.index(name) for name in ("tail", "unlinked", "host_late", "in_flight")],
        CAUSES.index("queued_before"),
    )
    return cause.astype(np.int64)


def _next_events(context: Context, end: Ints) -> tuple[Ints, Mask]:
    """The GPU event that ends each gap, and which gaps no event ends.

    Of events that start together the first in the file counts; one of no duration ends no gap.
    """
    chosen = context.window_events
    real = np.flatnonzero(chosen.end > chosen.start)
    if not real.size:
        return chosen.index[np.zeros_like(end)], np.ones(end.shape, np.bool_)
    place = np.searchsorted(chosen.start[real], end)
    return chosen.index[real[np.minimum(place, real.size - 1)]], place >= real.size
