from __future__ import annotations

import pytest

from perfproof.traces.memcpy import direction, memcpy
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "HtoD"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH"),
        ("Memcpy DtoD (Device -> Device)", "DtoD"),
        ("Memcpy PtoP (Device -> Device)", "PtoP"),
        ("CopyHostToDevice", "HtoD"),
        ("MEMORY_COPY_DEVICE_TO_HOST", "DtoH"),
        ("__amd_rocclr_copyBuffer", "other"),
    ],
)
def test_direction(name, expected):
    assert direction(name) == expected


def test_exposed_and_bytes():
    trace = TraceBuilder()
    trace.kernel("gemm", 1000, 100)
    copy = {"cat": "gpu_memcpy", "call": "cudaMemcpyAsync"}
    trace.kernel("Memcpy HtoD (Pinned -> Device)", 1080, 40, stream=9, bytes=64, **copy)
    trace.kernel("Memcpy HtoD (Pinned -> Device)", 1110, 20, stream=11, bytes=36, **copy)
    trace.kernel("Memcpy DtoH (Device -> Pinned)", 1150, 50, stream=9, **copy)
    rows = by(memcpy(context_of(trace)), "direction")
    assert list(rows) == ["HtoD", "DtoH"]
    up = rows["HtoD"]
    assert (up["count"], up["sum_us"], up["union_us"], up["exposed_us"]) == (2, 60, 50, 30)
    assert up["bytes"] == 100
    assert up["exposed_fraction_of_window"] == pytest.approx(30 / 200)
    assert up["gb_s"] == pytest.approx(100 / 60e3)
    assert (rows["DtoH"]["bytes"], rows["DtoH"]["gb_s"]) == (None, None)


def test_alone_is_beside_no_other_copy_either():
    trace = TraceBuilder()
    trace.kernel("Memcpy HtoD (Pinned -> Device)", 1000, 100, cat="gpu_memcpy")
    trace.kernel("Memcpy DtoH (Device -> Pinned)", 1080, 40, cat="gpu_memcpy", stream=9)
    rows = by(memcpy(context_of(trace)), "direction")
    assert (rows["HtoD"]["exposed_us"], rows["HtoD"]["alone_us"]) == (100, 80)
    assert (rows["DtoH"]["exposed_us"], rows["DtoH"]["alone_us"]) == (40, 20)
