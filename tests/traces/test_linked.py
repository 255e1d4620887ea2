"""TraceLens's definition of what counts, on hand-made traces; recorded ones stand elsewhere."""

from __future__ import annotations

import pytest

from perfproof.traces.linked import linked_timeline
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of


def arrow(trace: TraceBuilder, correlation: object, ends: str = "sf") -> None:
    for end in ends:
        trace.events.append({"ph": end, "cat": "ac2g", "name": "ac2g", "id": correlation, "ts": 1})


def busy_us(trace: TraceBuilder) -> float:
    rows = by(linked_timeline(context_of(trace)), "type")
    return rows["busy_time"]["time ms"] * 1000 if rows else 0.0


@pytest.mark.parametrize(("ends", "busy"), [("sf", 20.0), ("s", 0.0), ("f", 0.0), ("", 0.0)])
def test_an_arrow_needs_both_ends(ends, busy):
    trace = TraceBuilder()
    trace.kernel("gemm", 1000, 20)
    arrow(trace, 1, ends)
    assert busy_us(trace) == pytest.approx(busy)


def test_an_arrow_without_its_call_counts_nothing():
    trace = TraceBuilder()
    trace.gpu("gemm", 1000, 20, correlation=7)
    arrow(trace, 7)
    assert busy_us(trace) == 0


def test_a_graph_launch_counts_all_that_it_started():
    trace = TraceBuilder()
    correlation = trace.call("hipGraphLaunch", 900, 10)
    for start in (1000, 1100):
        trace.gpu("gemm", start, 20, correlation=correlation)
    trace.kernel("without arrow", 1300, 50)
    assert busy_us(trace) == pytest.approx(40)


@pytest.mark.parametrize("correlation", ["1", "x", 1.5, None, {"a": 1}, -1])
def test_odd_ids_are_no_fault(correlation):
    trace = TraceBuilder()
    trace.kernel("gemm", 1000, 20)
    arrow(trace, correlation)
    assert busy_us(trace) == 0
