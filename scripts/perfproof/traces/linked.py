"""`linked_timeline`: where the device's time went by the definition that TraceLens has of its work.

It counts a GPU event when an `ac2g` arrow joins it to its launch, or a graph launch started it.
"""

from __future__ import annotations

import numpy as np

from perfproof.traces.calls import graph_launches
from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows
from perfproof.traces.timeline import span, timeline_rows


def linked_timeline(context: Context) -> Rows:
    """Over these events; total is first start to last end."""
    call = context.links.call
    arrows = np.fromiter(context.trace.arrows, np.int64, len(context.trace.arrows))
    by_arrow = (call >= 0) & np.isin(context.gpu.correlation, arrows)
    busy = context.busy(by_arrow | np.isin(call, graph_launches(context)))
    return timeline_rows(busy, span(busy))
