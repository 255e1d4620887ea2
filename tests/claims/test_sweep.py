"""The verifier's interval arithmetic, against brute force."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from perfproof.claims.verifier.sweep import coverage, gaps, length

POINT = st.integers(0, 30)
INTERVALS = st.lists(st.tuples(POINT, POINT), max_size=8)


def ticks(intervals: list[tuple[int, int]]) -> set[int]:
    return {tick for start, end in intervals for tick in range(start, end)}


@given(INTERVALS, INTERVALS, INTERVALS)
def test_coverage_is_set_arithmetic(
    a: list[tuple[int, int]], b: list[tuple[int, int]], c: list[tuple[int, int]]
) -> None:
    lengths = coverage([a, b, c])
    assert length(lengths, 0b001) == len(ticks(a))
    assert length(lengths, 0b011, 0b100) == len((ticks(a) & ticks(b)) - ticks(c))
    assert length(lengths, 0b100, 0b011) == len(ticks(c) - ticks(a) - ticks(b))
    assert sum(lengths.values()) == len(ticks(a + b + c))


@given(INTERVALS, st.tuples(st.integers(0, 14), st.integers(15, 30)))
def test_gaps_are_the_rest_of_the_window(
    intervals: list[tuple[int, int]], window: tuple[int, int]
) -> None:
    found = gaps(intervals, window)
    assert ticks(found) == ticks([window]) - ticks(intervals)
    assert all(a[1] < b[0] for a, b in pairwise(found))


def test_overlaps_count_once() -> None:
    assert length(coverage([[(0, 10), (0, 10), (5, 12)]]), 0b1) == 12
