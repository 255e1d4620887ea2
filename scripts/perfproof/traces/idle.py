"""`idle`: the gaps of the window, by what the launch of the next GPU event was doing meanwhile."""

from __future__ import annotations

import numpy as np

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, us
from perfproof.traces.intervals import Ints, Mask, gaps

COLUMNS = ("cause", "count", "total_us", "fraction_of_window")
CAUSES = ("host_late", "in_flight", "queued_before", "unlinked", "tail")


def idle(context: Context) -> Rows:
    """Time in which no GPU event of the window runs, by cause; header only without GPU events."""
    chosen, window = context.window_events, context.window
    if not chosen.index.size:
        return Rows(COLUMNS, [])
    free = gaps(context.window_busy.every, window.start, window.end)
    cause = _causes(context, free.start, free.end)
    rows = []
    for index, name in enumerate(CAUSES):
        length = int((free.end - free.start)[cause == index].sum())
        rows.append((name, int((cause == index).sum()), us(length), window.share(length)))
    return Rows(COLUMNS, rows)


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
