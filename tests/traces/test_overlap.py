from __future__ import annotations

import pytest

from perfproof.traces.overlap import host_overlap
from tests.traces.builder import TraceBuilder
from tests.traces.make import context_of, records


def shared(trace):
    return {
        (row["kind"], row["name"], row["other_kind"], row["other_name"]): row["shared_fraction"]
        for row in records(host_overlap(context_of(trace)))
    }


def test_a_synchronisation_inside_a_copy_shares_its_idle_time():
    trace = TraceBuilder()
    trace.step(1, 1000, 1000)
    trace.kernel("k", 1000, 400, launched=1000)
    trace.op("aten::copy_", 1300, 500)
    trace.call("cudaStreamSynchronize", 1320, 440)
    trace.op("aten::mm", 1900, 15)
    trace.kernel("k", 1950, 50, launched=1940)
    found = shared(trace)
    copy, sync, late = (
        ("cpu_op", "aten::copy_"),
        ("call", "cudaStreamSynchronize"),
        ("host_late", ""),
    )
    assert found == {
        (*sync, *copy): 1.0,
        (*sync, *late): 1.0,
        (*copy, *sync): 360 / 400,
        (*copy, *late): 1.0,
        (*late, *copy): pytest.approx(400 / 550),
        (*late, *sync): pytest.approx(360 / 550),
    }


def test_without_a_gpu_the_loader_is_one_of_them():
    trace = TraceBuilder()
    trace.step(1, 1000, 1000)
    trace.mark("enumerate(DataLoader)#next", 1000, 200)
    trace.op("aten::stack", 1010, 180)
    trace.op("aten::mm", 1300, 600)
    assert shared(trace) == {
        ("cpu_op", "aten::stack", "dataloader", ""): 1.0,
        ("dataloader", "", "cpu_op", "aten::stack"): 0.9,
    }


def test_a_trace_without_a_window_has_no_rows():
    assert records(host_overlap(context_of(TraceBuilder()))) == []
