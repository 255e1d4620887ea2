from __future__ import annotations

import pytest

from perfproof.traces.clock_offset import clock_offsets
from perfproof.traces.columns import read_trace
from perfproof.traces.context import make_context
from perfproof.traces.crossrank import rank_collectives
from tests.traces.builder import TraceBuilder
from tests.traces.make import context_of


def rank(number: int, offset: float, late: float = 0, count: int = 5) -> TraceBuilder:
    """Collectives that end together, on a clock that shows `offset` µs more."""
    trace = TraceBuilder(distributedInfo={"rank": number, "world_size": 2})
    trace.step(0, offset, 10_000)
    for index in range(count):
        end = 1000 * (index + 1) + offset
        start = end - 300 + late
        trace.kernel("ncclDevKernel_AllReduce", start, end - start, launched=start - 50)
    return trace


def offsets(traces, base=(0, 0)):
    ranks = [rank_collectives(context_of(trace, at)) for at, trace in enumerate(traces)]
    return clock_offsets(ranks, dict(enumerate(base)))


def test_the_clocks_differ_not_the_arrivals():
    found = offsets([rank(0, 0), rank(1, 40, late=200)])
    assert found[1] == (40_000, 0)
    assert set(found) == {1}


def test_times_since_a_base():
    found = offsets([rank(0, 0), rank(1, 40)], (1_000_000, 1_500_000))
    assert found[1].median_ns == 540_000


def test_no_estimate_without_a_base_or_the_same_collectives():
    assert offsets([rank(0, 0), rank(1, 40)], (0, None)) == {}
    assert offsets([rank(0, 0), rank(1, 40, count=4)]) == {}
    assert offsets([rank(0, 0)], (0,)) == {}


def test_two_ranks_of_one_host_share_its_clock(shared_data):
    folder = shared_data / "runs" / "orbit2" / "117m_bf16_b8_fsdp2_trace"
    if not folder.is_dir():
        pytest.skip(f"no recorded traces in {folder}")
    contexts = [
        make_context(read_trace(folder / f"trace_rank{n}.json.gz", f"rank{n}"), n) for n in (0, 1)
    ]
    base = {context.rank: context.trace.meta.base_time_ns for context in contexts}
    found = clock_offsets([rank_collectives(context) for context in contexts], base)
    assert abs(found[1].median_ns) < 50_000
