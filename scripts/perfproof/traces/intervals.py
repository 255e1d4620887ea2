"""Lengths of unions, intersections and differences of half-open intervals [start, end).

All functions take and give int64 arrays (nanoseconds here). "Flat" intervals are sorted and
disjoint, as `union` returns them; empty intervals (end <= start) count as nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Intervals(NamedTuple):
    """Two arrays of one length: starts and ends."""

    start: Ints
    end: Ints

    def length(self) -> int:
        """Sum of the lengths; of flat intervals this is the covered time."""
        return int((self.end - self.start).sum())


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: Ints, end: Ints) -> Intervals:
    """The flat intervals that cover the same points; touching ones are joined."""
    real = end > start
    if not real.all():
        start, end = start[real], end[real]
    if not start.size:
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    opens = np.concatenate(([True], start[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return Intervals(start[opens], reach[closes])


def clip(flat: Intervals, low: int, high: int) -> Intervals:
    """The part of flat intervals inside [low, high)."""
    start, end = np.maximum(flat.start, low), np.minimum(flat.end, high)
    kept = end > start
    return Intervals(start[kept], end[kept])


def gaps(flat: Intervals, low: int, high: int) -> Intervals:
    """The part of [low, high) that flat intervals leave free."""
    inside = clip(flat, low, high)
    start = np.concatenate(([low], inside.end)).astype(np.int64)
    end = np.concatenate((inside.start, [high])).astype(np.int64)
    kept = end > start
    return Intervals(start[kept], end[kept])


def covered_before(flat: Intervals, points: Ints) -> Ints:
    """For each point, how much of (-inf, point) flat intervals cover."""
    if not flat.start.size:
        return np.zeros(points.shape, np.int64)
    total = np.concatenate(([0], np.cumsum(flat.end - flat.start)))
    begun = np.searchsorted(flat.start, points, side="right")
    last = np.maximum(begun - 1, 0)
    over = np.maximum(flat.end[last] - points, 0)
    covered: Ints = total[begun] - np.where(begun > 0, over, 0)
    return covered


def overlap(flat: Intervals, start: Ints, end: Ints) -> Ints:
    """For each [start, end), how much of it flat intervals cover."""
    return covered_before(flat, np.maximum(end, start)) - covered_before(flat, start)


def intersection_length(a: Intervals, b: Intervals) -> int:
    """Time that both of two flat sets cover."""
    return int(overlap(a, b.start, b.end).sum())


def difference_length(a: Intervals, b: Intervals) -> int:
    """Time that flat `a` covers and flat `b` does not."""
    return a.length() - intersection_length(a, b)


def union_length_by(group: Ints, start: Ints, end: Ints, groups: int) -> Ints:
    """Covered time of each group 0..groups-1, in one pass over all of them."""
    lengths = np.zeros(groups, np.int64)
    if not start.size:
        return lengths
    # Groups laid out side by side on one time axis: no interval reaches into the next group.
    low = int(start.min())
    stride = int(max(end.max(), start.max())) - low + 1
    if stride * groups >= 2**62:
        for one in np.unique(group):
            chosen = group == one
            lengths[one] = union(start[chosen], end[chosen]).length()
        return lengths
    shift = group * stride - low
    flat = union(start + shift, end + shift)
    np.add.at(lengths, flat.start // stride, flat.end - flat.start)
    return lengths
