from __future__ import annotations

import pytest

from perfproof.traces.cpu_ops import cpu_ops
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of


def test_self_time_is_what_inner_operations_leave():
    trace = TraceBuilder()
    trace.step(1, 1000, 200)
    trace.op("outer", 950, 150)
    trace.op("inner", 1010, 20)
    trace.op("inner", 1040, 30)
    trace.op("leaf", 1045, 5)
    trace.op("late", 1300, 50)
    rows = by(cpu_ops(context_of(trace)), "op")
    assert rows["outer"] == {
        "op": "outer",
        "count": 1,
        "total_us": 100,
        "self_us": 50,
        "self_fraction_of_window": 0.25,
        "gpu_idle_us": 50,
        "gpu_idle_fraction_of_window": 0.25,
    }
    assert (rows["inner"]["total_us"], rows["inner"]["self_us"]) == (50, 45)
    assert rows["leaf"]["self_us"] == 5
    assert "late" not in rows


def test_autograd_threads_count_and_overlap_counts_once_in_the_fraction():
    trace = TraceBuilder()
    trace.step(1, 1000, 200)
    trace.op("aten::mm", 1000, 100)
    trace.op("autograd::engine::evaluate_function: MmBackward0", 1050, 100, tid=7)
    trace.op("aten::mm", 1050, 100, tid=7)
    trace.op("aten::stack", 1000, 100, tid=8)
    rows = by(cpu_ops(context_of(trace)), "op")
    assert rows["aten::mm"]["self_us"] == 200
    assert rows["aten::mm"]["self_fraction_of_window"] == pytest.approx(150 / 200)
    assert "aten::stack" not in rows


def test_recursion_does_not_count_self_time_twice():
    trace = TraceBuilder()
    trace.op("aten::to", 0, 100)
    trace.op("aten::to", 10, 50)
    (row,) = by(cpu_ops(context_of(trace)), "op").values()
    assert (row["count"], row["total_us"], row["self_us"]) == (2, 150, 100)
    assert row["self_fraction_of_window"] == 1


def test_gpu_idle_is_own_time_without_gpu_work_and_outside_the_loader():
    trace = TraceBuilder()
    trace.step(1, 1000, 200)
    trace.op("aten::copy_", 1000, 100)
    trace.op("aten::empty", 1000, 10)
    trace.kernel("k", 1020, 40, launched=1015)
    trace.mark("enumerate(DataLoader)#next", 1090, 50)
    row = by(cpu_ops(context_of(trace)), "op")["aten::copy_"]
    assert row["self_us"] == 90
    assert (row["gpu_idle_us"], row["gpu_idle_fraction_of_window"]) == (10 + 30, 0.2)


def test_gpu_idle_counts_time_once_where_threads_overlap():
    trace = TraceBuilder()
    trace.op("aten::mm", 1000, 100)
    trace.op("aten::mm", 1050, 100, tid=7)
    trace.kernel("k", 1000, 10, launched=999)
    trace.kernel("k", 1190, 10, launched=1180)
    row = by(cpu_ops(context_of(trace)), "op")["aten::mm"]
    assert (row["self_us"], row["gpu_idle_us"]) == (200, 140)
