from __future__ import annotations

import pytest

from perfproof.traces.collectives import coll_analysis
from tests.traces.builder import TraceBuilder
from tests.traces.make import context_of, records

META = {
    "Collective name": "allreduce",
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1]",
    "Group size": 2,
    "dtype": "BFloat16",
    "In msg nelems": 1048576,
    "Out msg nelems": 1048576,
    "In split size": "[]",
    "Out split size": "[]",
}


def test_one_row_a_kind():
    trace = TraceBuilder()
    trace.kernel("ncclDevKernel", 100, 10, **META)
    trace.kernel("ncclDevKernel", 200, 14, **META)
    trace.kernel("ncclDevKernel", 300, 5, **{**META, "dtype": "Strange"})
    trace.kernel("ncclDevKernel", 400, 5)
    rows = records(coll_analysis(context_of(trace, rank=3)))
    assert len(rows) == 2
    first, second = rows
    assert (first["rank"], first["Collective name"], first["stream"]) == (3, "allreduce", 7)
    assert first["In msg size (MB)_first"] == 2
    assert (first["dur_sum"], first["dur_mean"], first["operation_count"]) == (24, 12, 2)
    assert first["dur_std"] == pytest.approx(8**0.5)
    assert (second["In msg size (MB)_first"], second["dur_std"]) == (None, None)


def test_without_metadata_only_the_header():
    trace = TraceBuilder()
    trace.kernel("ncclDevKernel", 400, 5)
    assert coll_analysis(context_of(trace)).rows == []
