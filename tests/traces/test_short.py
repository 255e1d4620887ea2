from __future__ import annotations

import pytest

from perfproof.traces.short import short_kernel_tables
from tests.traces.builder import TraceBuilder
from tests.traces.make import context_of, records


def test_histogram_and_summary():
    trace = TraceBuilder()
    shapes = {
        "Input Dims": [[2, 3], []],
        "Input Strides": [[3, 1], []],
        "Concrete Inputs": ["", "1"],
    }
    trace.op("aten::add", 0, 50, args=shapes)
    trace.kernel("k", 100, 2, launched=10)
    trace.kernel("k", 110, 4, launched=20)
    trace.kernel("long", 120, 10, launched=30)
    trace.gpu("k", 140, 9.999)
    tables = short_kernel_tables(context_of(trace))
    histogram = records(tables["short_kernel_histogram"])
    assert len(histogram) == 100
    assert sum(row["count"] for row in histogram) == 3
    assert (histogram[0]["bin_start"], histogram[-1]["bin_end"]) == (2, 9.999)
    known = {row["Parent cpu_op"]: row for row in records(tables["short_kernels_summary"])}
    add = known["aten::add"]
    assert add["Input dims"] == "((2, 3), ())"
    assert add["Input strides"] == "((3, 1), ())"
    assert add["Concrete Inputs"] == "('', '1')"
    assert add["Short Kernel duration (µs) sum"] == 6
    assert add["Short Kernel count"] == 2
    percent = add["Short Kernel duration (µs) percent of total time"]
    assert percent == pytest.approx(100 * 6 / 49.999)
    assert known[None]["Input dims"] is None


def test_no_short_kernels():
    trace = TraceBuilder()
    trace.kernel("long", 120, 10)
    assert all(not table.rows for table in short_kernel_tables(context_of(trace)).values())
