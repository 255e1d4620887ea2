from __future__ import annotations

import pytest

from perfproof.traces.calls import call_category, graph_launches, launch_calls, launch_stats
from perfproof.traces.calls import runtime_calls as runtime_calls_table
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of

LAUNCHES = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaLaunchCooperativeKernel",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaGraphLaunch",
    "hipLaunchKernel",
    "hipExtLaunchKernel",
    "hipModuleLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipGraphLaunch",
    "hipLaunchByPtr",
)
NO_LAUNCHES = (
    "cudaMemcpyAsync",
    "cudaStreamSynchronize",
    "hipFuncSetAttribute",
    "cudaLaunchHostFunc",
)


def test_which_calls_start_kernels():
    trace = TraceBuilder()
    for name in (*LAUNCHES, *NO_LAUNCHES):
        trace.call(name, 10, 1)
    context = context_of(trace)
    names = [context.name(n) for n in context.trace.calls.name[launch_calls(context)].tolist()]
    assert sorted(names) == sorted(LAUNCHES)
    assert graph_launches(context).size == 2
    assert call_category("hipGraphLaunch") == "graph"
    assert call_category("hipLaunchKernel") == "runtime"


def test_launch_stats():
    trace = TraceBuilder()
    trace.step(1, 1000, 1000)
    for index, wait in enumerate((10, 20, 30)):
        at = 1100 + 100 * index
        trace.kernel("k", at + wait, 4 + 8 * index, launched=at)
    trace.kernel("Memcpy", 1900, 2, cat="gpu_memcpy", launched=1890, call="cudaMemcpyAsync")
    trace.kernel("outside", 2500, 4, launched=2400)
    found = {row[0]: row[1] for row in launch_stats(context_of(trace)).rows}
    assert found == {
        "launches": 3,
        "gpu_events": 4,
        "short_kernel_count": 1,
        "short_kernel_count_fraction": pytest.approx(1 / 3),
        "launch_to_start_us_p50": pytest.approx(15),
        "launch_to_start_us_p95": pytest.approx(28.5),
        "median_kernel_us": pytest.approx(12),
    }


def test_launch_stats_without_launches_are_empty_not_zero():
    trace = TraceBuilder()
    trace.gpu("Memset", 10, 2, cat="gpu_memset")
    found = {row[0]: row[1] for row in launch_stats(context_of(trace)).rows}
    assert found["launch_to_start_us_p50"] is None
    assert found["median_kernel_us"] is None
    assert found["short_kernel_count_fraction"] is None


def test_runtime_calls_are_cut_to_the_window_and_overlap_counts_once():
    trace = TraceBuilder()
    trace.step(1, 1000, 100)
    trace.kernel("k", 1010, 5, launched=1005)
    trace.call("cudaStreamSynchronize", 950, 60)
    trace.call("cudaStreamSynchronize", 1040, 20, tid=1)
    trace.call("cudaStreamSynchronize", 1050, 20, tid=2)
    trace.call("cudaFree", 1100, 50)
    rows = by(runtime_calls_table(context_of(trace)), "call")
    sync = rows["cudaStreamSynchronize"]
    assert (sync["count"], sync["total_us"], sync["fraction_of_window"]) == (3, 40, 0.4)
    assert (sync["gpu_idle_us"], sync["gpu_idle_fraction_of_window"]) == (40, 0.4)
    assert "cudaFree" not in rows


def test_a_call_that_waits_for_a_working_gpu_has_little_gpu_idle_time():
    trace = TraceBuilder()
    trace.step(1, 1000, 100)
    trace.kernel("k", 1010, 70, launched=1005)
    trace.call("cudaStreamSynchronize", 1012, 73)
    trace.call("cudaMalloc", 1088, 10)
    trace.mark("enumerate(DataLoader)#next", 1090, 10)
    rows = by(runtime_calls_table(context_of(trace)), "call")
    assert rows["cudaStreamSynchronize"]["total_us"] == 73
    assert rows["cudaStreamSynchronize"]["gpu_idle_us"] == 5
    assert rows["cudaMalloc"]["gpu_idle_us"] == 2
