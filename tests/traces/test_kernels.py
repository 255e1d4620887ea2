from __future__ import annotations

import pytest

from perfproof.traces.kernels import TOP, kernel_groups, kernel_summary, top_kernels
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of, records

ELEMENTWISE = "void at::native::elementwise_kernel<add>"


def sample():
    trace = TraceBuilder()
    trace.step(1, 1000, 1000)
    trace.op("aten::mm", 1000, 100)
    trace.kernel("gemm_a", 1050, 40, launched=1010)
    trace.kernel("gemm_a", 1100, 20, launched=1020)
    trace.kernel("gemm_a", 1110, 30, launched=1030, stream=9)
    trace.op("aten::add", 1200, 100)
    trace.kernel(ELEMENTWISE, 1250, 10, launched=1210)
    trace.kernel("graph_kernel", 1400, 10, launched=1390, call="cudaGraphLaunch")
    trace.gpu("gemm_a", 900, 7)
    trace.kernel("Memcpy HtoD", 1500, 10, cat="gpu_memcpy")
    return context_of(trace)


def test_kernel_summary_has_every_kernel_once():
    rows = records(kernel_summary(sample()))
    keys = [
        (r["Parent op category"], r["Parent cpu_op"], r["Kernel name"], r["Kernel stream"])
        for r in rows
    ]
    assert keys == [
        ("GEMM", "aten::mm", "gemm_a", 7),
        ("GEMM", "aten::mm", "gemm_a", 9),
        ("graph", "cudaGraphLaunch", "graph_kernel", 7),
        ("elementwise", "aten::add", ELEMENTWISE, 7),
        (None, None, "gemm_a", 7),
    ]
    first = rows[0]
    assert first["Kernel duration (µs)_sum"] == 60
    assert first["Kernel duration (µs)_count"] == 2
    assert first["Kernel duration (µs)_mean"] == 30
    assert (first["Kernel duration (µs)_min"], first["Kernel duration (µs)_max"]) == (20, 40)
    assert first["Percent of kernels time (%)"] == pytest.approx(100 * 60 / 117)
    assert first["Percent of total time (%)"] == pytest.approx(100 * 60 / 610)
    assert sum(r["Percent of kernels time (%)"] for r in rows) == pytest.approx(100)


def test_kernel_groups_count_the_window_only():
    rows = by(kernel_groups(sample()), "group")
    gemm = rows["gemm"]
    assert (gemm["count"], gemm["sum_us"], gemm["union_us"]) == (3, 90, 80)
    assert gemm["fraction_of_window"] == pytest.approx(0.08)
    assert rows["memcpy"]["count"] == 1
    assert rows["other"]["count"] == 1
    assert sum(row["count"] for row in rows.values()) == 6


def test_top_kernels_by_covered_time():
    rows = records(top_kernels(sample()))
    assert [row["kernel"] for row in rows] == ["gemm_a", "graph_kernel", ELEMENTWISE]
    assert rows[0]["union_us"] == 80
    assert rows[0]["mean_us"] == 30
    assert [row["group"] for row in rows] == ["gemm", "other", "elementwise"]


def test_top_kernels_are_limited():
    trace = TraceBuilder()
    for index in range(TOP + 10):
        trace.kernel(f"kernel_{index}", 1000 + 100 * index, 1 + index)
    rows = records(top_kernels(context_of(trace)))
    assert len(rows) == TOP
    assert rows[0]["kernel"] == f"kernel_{TOP + 9}"


def overlapping():
    """gemm 1000-1100 and, beside it, another gemm 1050-1150, a copy 1090-1120, a sum 1140-1200."""
    trace = TraceBuilder()
    trace.kernel("gemm_a", 1000, 100)
    trace.kernel("gemm_b", 1050, 100, stream=9)
    trace.kernel("Memcpy HtoD", 1090, 30, cat="gpu_memcpy", stream=11)
    trace.kernel("reduce_kernel", 1140, 60)
    return context_of(trace)


def test_a_group_is_alone_while_no_other_group_runs():
    rows = by(kernel_groups(overlapping()), "group")
    assert {name: row["alone_us"] for name, row in rows.items() if row["count"]} == {
        "gemm": 90 + 20,
        "memcpy": 0,
        "reduction": 50,
    }
    assert rows["gemm"]["alone_fraction_of_window"] == pytest.approx(110 / 200)


def test_a_kernel_is_alone_while_no_other_gpu_event_runs():
    rows = by(top_kernels(overlapping()), "kernel")
    assert {name: row["alone_us"] for name, row in rows.items()} == {
        "gemm_a": 50,
        "gemm_b": 20,
        "reduce_kernel": 50,
    }
