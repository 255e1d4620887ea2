from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.traces.optree import OpTree
from tests.traces.builder import TraceBuilder
from tests.traces.make import trace_of


@st.composite
def nested(draw, low=0, high=200, depth=0):
    """Properly nested operations inside [low, high), in µs."""
    spans, at = [], low
    while at < high and depth < 4 and draw(st.booleans()):
        start = draw(st.integers(at, high - 1))
        end = draw(st.integers(start + 1, high))
        spans.append((start, end))
        spans += draw(nested(start, end, depth + 1))
        at = end
    return spans


def tree_of(spans, tid=1):
    trace = TraceBuilder()
    for start, end in spans:
        trace.op(f"{start}-{end}", start, end - start, tid=tid)
    columns = trace_of(trace)
    return columns.ops, OpTree(columns.ops)


def shortest(ops, time, last):
    """Length of the shortest operation open at `time`, by trying all."""
    lengths = [
        end - start
        for start, end in zip(ops.start.tolist(), ops.end.tolist(), strict=True)
        if start <= time <= end - (not last)
    ]
    return min(lengths, default=None)


@settings(deadline=None)
@given(nested(), st.lists(st.integers(-5, 205), min_size=1))
def test_innermost_is_the_shortest_open_operation(spans, times):
    ops, tree = tree_of(spans)
    asked = np.array(times, np.int64) * 1000 + 500  # never on an edge
    thread = np.zeros(asked.size, np.int64)
    found = tree.innermost(thread, asked)
    lengths = [int(ops.end[at] - ops.start[at]) if at >= 0 else None for at in found.tolist()]
    assert lengths == [shortest(ops, time, True) for time in asked.tolist()]


@settings(deadline=None)
@given(nested())
def test_own_time_is_the_time_without_inner_operations(spans):
    ops, tree = tree_of(spans)
    if not spans:
        return
    own = tree.own_time(int(ops.thread[0]))
    assert (
        int((own.end - own.start).sum()) == len({t for s, e in spans for t in range(s, e)}) * 1000
    )
    for at, start, end in zip(*(column.tolist() for column in own), strict=True):
        middle = (start + end) // 2
        assert int(ops.end[at] - ops.start[at]) == shortest(ops, middle, False)


def test_a_launch_at_the_edge_of_an_operation_is_inside():
    _, tree = tree_of([(10, 20)])
    zero = np.zeros(4, np.int64)
    times = np.array([9_999, 10_000, 20_000, 20_001])
    assert tree.innermost(zero, times).tolist() == [-1, 0, 0, -1]


def test_threads_do_not_nest_in_each_other():
    trace = TraceBuilder()
    trace.op("outer", 0, 100, tid=1)
    trace.op("other", 10, 5, tid=2)
    tree = OpTree(trace_of(trace).ops)
    assert tree.parents().tolist() == [-1, -1]
    assert tree.threads() == [0, 1]


def test_parents():
    _, tree = tree_of([(0, 100), (10, 50), (20, 30), (60, 70)])
    assert tree.parents().tolist() == [-1, 0, 1, 0]
