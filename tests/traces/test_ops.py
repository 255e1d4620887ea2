from __future__ import annotations

import math

import pytest

from perfproof.traces.ops import NO_LAUNCH, ops_tables
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of


def tables(trace):
    made = ops_tables(context_of(trace))
    return by(made["ops_summary"], "name"), by(made["ops_summary_by_category"], "op category")


def test_direct_and_subtree_time():
    trace = TraceBuilder()
    trace.op("outer", 0, 100)
    trace.op("aten::mm", 10, 20)
    trace.kernel("gemm", 200, 10, launched=15)
    trace.kernel("void elementwise_kernel", 210, 4, launched=50)
    trace.kernel("ncclDevKernel", 300, 50, launched=60)
    by_name, by_category = tables(trace)
    assert by_name["outer"]["total_direct_kernel_time_sum"] == 4
    assert by_name["outer"]["total_subtree_kernel_time_sum"] == 64  # with the collective inside
    assert by_name["aten::mm"]["total_direct_kernel_time_sum"] == 10
    assert by_name["aten::mm"]["total_direct_kernel_time_ms"] == 0.01
    assert by_name["aten::mm"]["Categories"] == "['GEMM']"
    assert by_name["aten::mm"]["Percentage (%)"] == pytest.approx(1000 / 14)
    assert by_name["outer"]["Cumulative Percentage (%)"] == pytest.approx(100)
    assert by_category["GEMM"]["Count"] == 1
    assert by_category["elementwise"]["total_direct_kernel_time_ms"] == pytest.approx(0.004)


def test_kernels_of_one_launcher_that_overlap_count_once():
    trace = TraceBuilder()
    trace.op("aten::mm", 0, 100)
    trace.kernel("gemm", 200, 10, launched=10)
    trace.kernel("gemm", 205, 10, launched=20, stream=9)
    by_name, _ = tables(trace)
    assert by_name["aten::mm"]["total_direct_kernel_time_sum"] == 15


def test_calls_and_unlinked_events_stand_for_themselves():
    trace = TraceBuilder()
    trace.kernel("a", 100, 10, call="hipGraphLaunch")
    trace.kernel("b", 200, 5, call="hipLaunchKernel")
    trace.gpu("c", 300, 3)
    trace.gpu("d", 310, 2)
    by_name, by_category = tables(trace)
    assert by_name["hipGraphLaunch"]["Categories"] == "['graph']"
    assert by_name["hipLaunchKernel"]["Categories"] == "['runtime']"
    assert by_name[NO_LAUNCH]["Count"] == 2
    assert by_name[NO_LAUNCH]["total_direct_kernel_time_sum"] == 5
    assert by_category["unlinked"]["Count"] == 2


def test_torchscripts_wrapper_is_passed_through():
    trace = TraceBuilder()
    trace.op("conv_bn_fused", 0, 100)
    trace.op("execute", 10, 50)
    trace.kernel("k", 200, 10, launched=20)
    by_name, _ = tables(trace)
    assert list(by_name) == ["conv_bn_fused"]


def test_shares_do_not_depend_on_how_python_sums_floats():
    # Ten times 0.0001 ms: a plain running sum misses 0.001 by a bit, Python 3.12's does not.
    trace = TraceBuilder()
    for index in range(10):
        trace.op(f"aten::op{index}", 10 * index, 5)
        trace.kernel("k", 1000 + 10 * index, 0.1, launched=10 * index + 1)
    by_name, _ = tables(trace)
    exact = math.fsum([0.1] * 10)
    assert {row["Percentage (%)"] for row in by_name.values()} == {100 * 0.1 / exact}
