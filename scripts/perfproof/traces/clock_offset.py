"""How far the clocks of ranks are apart: all ranks leave a collective together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from perfproof.traces.crossrank import RankCollectives


class Offset(NamedTuple):
    """Clock of a rank less that of the lowest rank, in ns: median, and 5th to 95th percentile."""

    median_ns: float
    spread_ns: float


def clock_offsets(
    ranks: Sequence[RankCollectives], base_time_ns: Mapping[int, int | None]
) -> dict[int, Offset]:
    """Offsets of the ranks that share collectives with the lowest one, itself left out.

    Only process groups in which both ranks have the same sequence of collectives count, and only
    clocks that are tied to unix time. What is found is the difference of the clocks plus that of
    the moments at which the ranks leave: some microseconds.
    """
    tied = sorted((r for r in ranks if base_time_ns.get(r.rank) is not None), key=lambda r: r.rank)
    found = {}
    for rank in tied[1:]:
        between = _differences(tied[0], rank)
        if between:
            shift = (base_time_ns[rank.rank] or 0) - (base_time_ns[tied[0].rank] or 0)
            low, middle, high = np.percentile(np.array(between, np.int64) + shift, (5, 50, 95))
            found[rank.rank] = Offset(float(middle), float(high - low))
    return found


def _differences(first: RankCollectives, other: RankCollectives) -> list[int]:
    """End on the other rank less end on the first, of each collective that both have."""
    if first.steps != other.steps:
        return []
    ends: list[int] = []
    for group in sorted(first.groups.keys() & other.groups.keys()):
        ours, theirs = first.groups[group], other.groups[group]
        if [one.name for one in ours] == [one.name for one in theirs]:
            ends += [b.end - a.end for a, b in zip(ours, theirs, strict=True)]
    return ends
