from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.traces import intervals as iv
from perfproof.traces.intervals import Intervals

# Intervals on a small line, so that a set of integers is the model.
spans = st.lists(st.tuples(st.integers(-30, 60), st.integers(-5, 25)), max_size=12)


def arrays(pairs: list[tuple[int, int]]) -> Intervals:
    start = np.array([begin for begin, _ in pairs], np.int64)
    return Intervals(start, start + np.array([size for _, size in pairs], np.int64))


def points(intervals: Intervals) -> set[int]:
    pairs = zip(intervals.start.tolist(), intervals.end.tolist(), strict=True)
    return {point for start, end in pairs for point in range(start, end)}


@settings(deadline=None)
@given(spans)
def test_union_covers_the_same_points_with_disjoint_sorted_intervals(pairs):
    flat = iv.union(*arrays(pairs))
    assert points(flat) == points(arrays(pairs))
    assert flat.length() == len(points(flat))
    assert (flat.end > flat.start).all()
    assert (flat.start[1:] > flat.end[:-1]).all()


@settings(deadline=None)
@given(spans, spans)
def test_difference_and_intersection_lengths(left, right):
    a, b = iv.union(*arrays(left)), iv.union(*arrays(right))
    assert iv.difference_length(a, b) == len(points(a) - points(b))
    assert iv.intersection_length(a, b) == len(points(a) & points(b))


@settings(deadline=None)
@given(spans, st.integers(-40, 70), st.integers(0, 60))
def test_clip_and_gaps_split_a_window(pairs, low, size):
    flat, high = iv.union(*arrays(pairs)), low + size
    window = set(range(low, high))
    assert points(iv.clip(flat, low, high)) == points(flat) & window
    assert points(iv.gaps(flat, low, high)) == window - points(flat)


@settings(deadline=None)
@given(spans, spans)
def test_overlap_of_each_interval(pairs, wanted):
    flat, asked = iv.union(*arrays(pairs)), arrays(wanted)
    expected = [len(points(flat) & set(range(b, b + size))) for b, size in wanted]
    assert iv.overlap(flat, *asked).tolist() == expected


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-30, 60), st.integers(-5, 25))))
def test_union_length_by_group(rows):
    group = np.array([row[0] for row in rows], np.int64)
    start, end = arrays([(begin, size) for _, begin, size in rows])
    expected = [
        len(points(arrays([(b, size) for g, b, size in rows if g == one]))) for one in range(4)
    ]
    assert iv.union_length_by(group, start, end, 4).tolist() == expected


@settings(deadline=None)
@given(spans, spans)
def test_intersection_and_join(left, right):
    a, b = iv.union(*arrays(left)), iv.union(*arrays(right))
    assert points(iv.intersection(a, b)) == points(a) & points(b)
    assert points(iv.join(a, b)) == points(a) | points(b)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-30, 60), st.integers(-5, 25))), spans)
def test_lengths_by_group_shared_and_alone(rows, other):
    group = np.array([row[0] for row in rows], np.int64)
    start, end = arrays([(begin, size) for _, begin, size in rows])
    sets = [points(arrays([(b, size) for g, b, size in rows if g == one])) for one in range(4)]
    flat = iv.union(*arrays(other))
    shared = [len(mine & points(flat)) for mine in sets]
    assert iv.shared_length_by(group, start, end, 4, flat).tolist() == shared
    alone = [
        len(mine - set().union(*(s for at, s in enumerate(sets) if at != one)))
        for one, mine in enumerate(sets)
    ]
    assert iv.alone_length_by(group, start, end, 4).tolist() == alone


def test_union_length_by_keeps_groups_apart_when_one_axis_would_overflow():
    start = np.array([0, 2**60, 0], np.int64)
    end = start + 10
    group = np.array([0, 1, 5], np.int64)
    assert iv.union_length_by(group, start, end, 6).tolist() == [10, 10, 0, 0, 0, 10]
