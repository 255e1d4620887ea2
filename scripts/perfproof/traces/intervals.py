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


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """The flat intervals that both of two flat sets cover."""
    if not a.start.size or not b.start.size:
        return EMPTY
    low, high = min(int(a.start[0]), int(b.start[0])), max(int(a.end[-1]), int(b.end[-1]))
    free = [gaps(flat, low, high) for flat in (a, b)]
    return gaps(join(*free), low, high)


def join(*sets: Intervals) -> Intervals:
    """The flat intervals that cover what any of the sets covers."""
    starts, ends = zip(*sets, strict=True)
    return union(np.concatenate(starts), np.concatenate(ends))


def union_by(group: Ints, start: Ints, end: Ints) -> tuple[Ints, Intervals]:
    """Flat intervals of each group 0, 1, …, in one pass, and the group that each is of."""
    if not start.size:
        return EMPTY.start, EMPTY
    # Groups laid out side by side on one time axis: no interval reaches into the next group.
    low = int(start.min())
    stride = int(max(end.max(), start.max())) - low + 1
    if stride * (int(group.max()) + 1) >= 2**62:
        return _union_one_by_one(group, start, end)
    shift = group * stride - low
    flat = union(start + shift, end + shift)
    owner = flat.start // stride
    back = owner * stride - low
    return owner, Intervals(flat.start - back, flat.end - back)


def _union_one_by_one(group: Ints, start: Ints, end: Ints) -> tuple[Ints, Intervals]:
    each = {one: union(start[group == one], end[group == one]) for one in np.unique(group).tolist()}
    owner = np.repeat(list(each), [flat.start.size for flat in each.values()])
    starts, ends = zip(*each.values(), strict=True)
    return owner.astype(np.int64), Intervals(np.concatenate(starts), np.concatenate(ends))


def union_length_by(group: Ints, start: Ints, end: Ints, groups: int) -> Ints:
    """Covered time of each group 0..groups-1, in one pass over all of them."""
    owner, flat = union_by(group, start, end)
    return _sum_by(owner, flat.end - flat.start, groups)


def shared_length_by(group: Ints, start: Ints, end: Ints, groups: int, other: Intervals) -> Ints:
    """Time of each group 0..groups-1 that flat `other` covers too."""
    owner, flat = union_by(group, start, end)
    return _sum_by(owner, overlap(other, flat.start, flat.end), groups)


def alone_length_by(group: Ints, start: Ints, end: Ints, groups: int) -> Ints:
    """Time of each group 0..groups-1 in which no interval of another group is open."""
    owner, flat = union_by(group, start, end)
    time = np.concatenate((flat.start, flat.end))
    order = np.argsort(time, kind="stable")
    change = np.repeat([1, -1], flat.start.size)
    # Where one group is open, the sum of the numbers of the open groups is its number.
    opened = np.cumsum(change[order])[:-1]
    number = np.cumsum((change * np.tile(owner, 2))[order])[:-1]
    single = opened == 1
    return _sum_by(number[single], np.diff(time[order])[single], groups)


def _sum_by(group: Ints, values: Ints, groups: int) -> Ints:
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, values)
    return sums
