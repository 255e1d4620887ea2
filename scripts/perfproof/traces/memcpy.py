"""`memcpy`: copies of the window by direction."""

from __future__ import annotations

import re

import numpy as np

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, us
from perfproof.traces.intervals import Ints, clip, difference_length, join, union

COLUMNS = (
    "direction",
    "count",
    "sum_us",
    "union_us",
    "exposed_us",
    "bytes",
    "fraction_of_window",
    "exposed_fraction_of_window",
    "alone_us",
    "alone_fraction_of_window",
    "gb_s",
)
DIRECTIONS = {
    "HtoD": re.compile("HtoD|HOST_TO_DEVICE|HostToDevice", re.IGNORECASE),
    "DtoH": re.compile("DtoH|DEVICE_TO_HOST|DeviceToHost", re.IGNORECASE),
    "DtoD": re.compile("DtoD|DEVICE_TO_DEVICE|DeviceToDevice", re.IGNORECASE),
    "PtoP": re.compile("PtoP|PeerToPeer", re.IGNORECASE),
    "other": re.compile(""),
}


def direction(name: str) -> str:
    """Direction of a copy by the event's name, first match."""
    return next(key for key, pattern in DIRECTIONS.items() if pattern.search(name))


def memcpy(context: Context) -> Rows:
    """One row a direction that occurs.

    Exposed = while nothing computes or communicates; alone = nor copies in another direction.
    """
    gpu, window, busy = context.gpu, context.window, context.window_busy
    copies = np.flatnonzero(window.inside & context.memcpy)
    kinds = np.array([direction(context.name(name)) for name in gpu.name[copies].tolist()])
    covering = union(
        np.concatenate((busy.compute.start, busy.comm.start)),
        np.concatenate((busy.compute.end, busy.comm.end)),
    )
    rows = []
    for kind in DIRECTIONS:
        chosen = copies[kinds == kind] if copies.size else copies
        if not chosen.size:
            continue
        flat = clip(union(gpu.start[chosen], gpu.end[chosen]), window.start, window.end)
        exposed = difference_length(flat, covering)
        others = copies[kinds != kind]
        elsewhere = union(gpu.start[others], gpu.end[others])
        alone = difference_length(flat, join(covering, elsewhere))
        sizes = gpu.bytes[chosen]
        rows.append(
            (
                kind,
                int(chosen.size),
                us(int(gpu.duration[chosen].sum())),
                us(flat.length()),
                us(exposed),
                int(sizes[sizes >= 0].sum()) if (sizes >= 0).any() else None,
                window.share(flat.length()),
                window.share(exposed),
                us(alone),
                window.share(alone),
                _rate(sizes, gpu.duration[chosen]),
            )
        )
    return Rows(COLUMNS, rows)


def _rate(sizes: Ints, duration: Ints) -> float | None:
    """10^9 bytes a second while copying, over the copies whose size and duration are recorded."""
    known = (sizes >= 0) & (duration > 0)
    return int(sizes[known].sum()) / int(duration[known].sum()) if known.any() else None
