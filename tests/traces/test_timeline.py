"""Hand-made traces with known truth: ten kernels of 20 µs every 30 µs, then one thing wrong."""

from __future__ import annotations

import pytest

from perfproof.traces.timeline import COLUMNS, gpu_timeline, window_timeline
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import by, context_of

COMM_NAMES = (
    "ncclKernel_AllReduce_RING_LL_Sum_float",
    "void rcclGenericKernel<1>",
    "cross_device_reduce_2stage",
    "mscclpp_allreduce",
    "deep_ep::dispatch",
    "nvshmem_put",
    "two_shot_all_reduce_kernel",
)


def times(trace, table=gpu_timeline):
    rows = by(table(context_of(trace)), "type")
    return {name.removesuffix("_time"): row["time ms"] * 1000 for name, row in rows.items()}


def busy_of_total(trace):
    found = times(trace)
    return pytest.approx(found["busy"]), pytest.approx(found["total"])


def test_columns_and_identity():
    table = gpu_timeline(context_of(ten_kernels()))
    assert table.columns == COLUMNS == ("type", "time ms", "percent")
    rows = by(table, "type")
    parts = ("computation_time", "exposed_comm_time", "exposed_memcpy_time", "idle_time")
    assert sum(rows[part]["percent"] for part in parts) == pytest.approx(100)
    assert rows["busy_time"]["percent"] == pytest.approx(100 * 200 / 290)


def test_ten_kernels():
    assert busy_of_total(ten_kernels()) == (200, 290)


def test_kernels_launched_before_the_recording_count():
    trace = ten_kernels()
    trace.events = [e for e in trace.events if e["cat"] == "kernel" or e["ts"] > 1150]
    assert busy_of_total(trace) == (200, 290)


@pytest.mark.parametrize("flow", [None, "async_cpu_to_gpu", "ac2g"])
def test_flow_events_make_no_difference(flow):
    trace = ten_kernels()
    if flow:
        trace.event(flow, flow, 1000, 0, ph="s")
    assert busy_of_total(trace) == (200, 290)


def test_negative_durations_take_nothing_away():
    trace = ten_kernels()
    trace.kernel("broken", 1100, -25)
    assert busy_of_total(trace) == (200, 290)


def test_zero_durations_do_not_stretch_the_span():
    trace = ten_kernels()
    trace.kernel("nothing", 5000, 0)
    assert busy_of_total(trace) == (200, 290)


def test_overlap_and_duplicates_count_once():
    trace = ten_kernels()
    for event in [e for e in trace.events if e["cat"] == "kernel"]:
        trace.events.append(dict(event))
    trace.kernel("across", 1010, 25, stream=9)
    assert busy_of_total(trace) == (210, 290)


def test_a_graph_of_ten_kernels_with_one_launch():
    trace = TraceBuilder()
    graph = trace.call("hipGraphLaunch", 990, 5)
    for index in range(10):
        trace.gpu("k", 1000 + 30 * index, 20, correlation=graph)
    assert busy_of_total(trace) == (200, 290)


def test_three_steps_with_gaps_between_them():
    trace = TraceBuilder()
    for step in range(3):
        begin = 1000 + 800 * step
        trace.step(step, begin, 300)
        trace.event("gpu_user_annotation", f"ProfilerStep#{step}", begin, 300, args={})
        for index in range(10):
            trace.kernel("k", begin + 10 + 30 * index, 20)
    assert times(trace)["busy"] == pytest.approx(600)
    assert times(trace)["total"] == pytest.approx(1600 + 290)
    window = times(trace, window_timeline)
    assert window["busy"] == pytest.approx(600)
    assert window["total"] == pytest.approx(1600 + 300)


@pytest.mark.parametrize("name", COMM_NAMES)
def test_communication_by_name(name):
    trace = TraceBuilder()
    trace.kernel("gemm", 1000, 100)
    trace.kernel(name, 1080, 50, stream=9)
    found = times(trace)
    assert (found["total_comm"], found["exposed_comm"]) == (pytest.approx(50), pytest.approx(30))


def test_communication_by_metadata():
    trace = TraceBuilder()
    trace.kernel("custom_kernel", 1000, 100, **{"Collective name": "allreduce"})
    assert times(trace)["total_comm"] == pytest.approx(100)


def test_exposed_copies_are_hidden_by_compute_and_by_communication():
    trace = TraceBuilder()
    trace.kernel("gemm", 1000, 100)
    trace.kernel("ncclDevKernel", 1100, 100, stream=9)
    trace.kernel("Memcpy HtoD", 1050, 200, cat="gpu_memcpy", stream=11)
    trace.kernel("Memset", 1250, 10, cat="gpu_memset")
    found = times(trace)
    assert found["total_memcpy"] == pytest.approx(200)
    assert found["exposed_memcpy"] == pytest.approx(50)
    assert found["computation"] == pytest.approx(110)
    assert found["idle"] == pytest.approx(0)


def test_copies_that_old_rocm_files_record_as_kernels():
    trace = TraceBuilder()
    trace.kernel("__amd_rocclr_copyBuffer", 1000, 100)
    assert times(trace)["total_memcpy"] == pytest.approx(100)


def test_nothing_gives_no_rows():
    trace = TraceBuilder()
    trace.kernel("nothing", 5000, 0)
    assert gpu_timeline(context_of(trace)).rows == []
