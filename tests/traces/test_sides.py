from __future__ import annotations

import pytest

from perfproof.traces.sides import Work, has_steps, mean, measure
from tests.traces.builder import TraceBuilder
from tests.traces.make import context_of


def stepped(durations: list[float], empty: int = 0) -> TraceBuilder:
    """One GEMM a step, 5 µs after its start; then steps that launch nothing."""
    trace = TraceBuilder()
    at = 1000.0
    for number, duration in enumerate(durations):
        trace.step(number, at, 100)
        trace.op("aten::mm", at + 1, 10)
        trace.kernel("gemm_kernel", at + 10, duration, launched=at + 5)
        at += 100
    for number in range(empty):
        trace.step(len(durations) + number, at, 1000)
        at += 1000
    return trace


def test_per_step():
    found = measure(context_of(stepped([20, 30])), "per step")
    assert found.steps == [0, 1]
    assert found.time_ns == 100_000
    assert found.totals["busy"] == 25_000
    assert found.totals["idle"] == 75_000
    assert found.levels["operators"] == {("aten::mm",): Work(1, 25_000)}
    assert found.levels["gemm"] == {("gemm_kernel", "forward"): Work(1, 25_000)}


def test_steps_without_gpu_work_are_left_out():
    full = measure(context_of(stepped([20, 30])), "per step")
    assert measure(context_of(stepped([20, 30], empty=3)), "per step") == full


def test_a_step_lasts_until_its_gpu_work_ends():
    found = measure(context_of(stepped([20, 200])), "per step")
    assert found.time_ns == (100 + 210) * 1000 / 2
    assert found.totals["idle"] == found.time_ns - found.totals["busy"]


def test_per_trace_counts_all_events():
    context = context_of(stepped([20, 30]))
    found = measure(context, "per trace")
    assert (found.time_ns, found.steps) == (130_000 - 10_000 + 10_000, [])
    assert found.levels["kernels"] == {("gemm_kernel", "gemm"): Work(2, 50_000)}


def test_has_steps():
    assert has_steps(context_of(stepped([20])))
    unstepped = TraceBuilder()
    unstepped.kernel("k", 100, 10)
    assert not has_steps(context_of(unstepped))


def test_mean_over_gpus_counts_what_one_lacks_as_nothing():
    other = TraceBuilder()
    other.step(0, 1000, 100)
    other.kernel("ncclDevKernel_AllReduce", 1010, 40, launched=1005)
    each = [measure(context_of(trace), "per step") for trace in (stepped([20]), other)]
    found = mean(each)
    assert found.totals["busy"] == 30_000
    assert found.levels["kernels"] == {
        ("gemm_kernel", "gemm"): Work(0.5, 10_000),
        ("ncclDevKernel_AllReduce", "comm"): Work(0.5, 20_000),
    }
    assert found.totals["communication"] == pytest.approx(20_000)


def test_covered_time_counts_overlap_once():
    trace = stepped([20])
    trace.kernel("gemm_kernel", 1015, 20, launched=1006, stream=9)
    found = measure(context_of(trace), "per step")
    assert found.levels["kernels"] == {("gemm_kernel", "gemm"): Work(2, 25_000)}
