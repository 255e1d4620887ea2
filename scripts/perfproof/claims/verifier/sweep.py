"""Interval arithmetic by one sweep over start and end events, in integer nanoseconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

Interval = tuple[int, int]
"""Start and end in ns; intervals with end <= start count for nothing."""


def coverage(sets: Sequence[Iterable[Interval]]) -> dict[int, int]:
    """Length of time by the combination of sets that is active.

    The key is a bit mask (bit i: some interval of `sets[i]` is open). Only masks above 0 appear.
    """
    edges: list[tuple[int, int, int]] = []
    for index, intervals in enumerate(sets):
        for start, end in intervals:
            if end > start:
                edges.append((start, index, 1))
                edges.append((end, index, -1))
    edges.sort()
    lengths: dict[int, int] = defaultdict(int)
    open_count, mask, before = [0] * len(sets), 0, 0
    for time, index, change in edges:
        if mask:
            lengths[mask] += time - before
        before = time
        open_count[index] += change
        mask = mask | 1 << index if open_count[index] else mask & ~(1 << index)
    return dict(lengths)


def length(lengths: dict[int, int], inside: int, outside: int = 0) -> int:
    """Time in which all sets of the mask `inside` are active and none of `outside`."""
    return sum(
        span for mask, span in lengths.items() if mask & inside == inside and not mask & outside
    )


def without(
    own: Iterable[Interval], others: Iterable[Interval], window: Interval
) -> list[Interval]:
    """Parts of `window` that some of `own` covers and none of `others`, in order, disjoint."""
    edges = [(time, 0, change) for one in own if one[1] > one[0]
             for time, change in ((one[0], 1), (one[1], -1))]  # fmt: skip
    edges += [(time, 1, change) for one in others if one[1] > one[0]
              for time, change in ((one[0], 1), (one[1], -1))]  # fmt: skip
    edges.sort()
    found: list[Interval] = []
    depth, before = [0, 0], window[0]
    for time, side, change in edges:
        if depth[0] and not depth[1]:
            start, end = max(before, window[0]), min(time, window[1])
            if end > start:
                found.append((start, end))
        depth[side] += change
        before = time
    return found


def gaps(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    """Parts of `window` that no interval covers, in order."""
    edges = [(window[0], 0), (window[1], 0)]
    for start, end in intervals:
        if end > start:
            edges.append((start, 1))
            edges.append((end, -1))
    edges.sort(key=lambda edge: edge[0])
    found: list[Interval] = []
    depth, before = 0, window[0]
    for time, change in edges:
        if depth == 0 and time > before:
            start, end = max(before, window[0]), min(time, window[1])
            if end > start:
                found.append((start, end))
        depth += change
        before = time
    return found
