from __future__ import annotations

import pytest

from perfproof.traces.model import KERNEL, MEMCPY, MEMSET
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import trace_of


def test_kinds_are_told_apart_and_sorted_by_start():
    trace = TraceBuilder()
    trace.gpu("Memset (Device)", 30, 1, cat="gpu_memset")
    trace.gpu("k", 20, 1)
    trace.gpu("Memcpy HtoD", 10, 1, cat="gpu_memcpy", bytes=64)
    trace.op("aten::add", 5, 2)
    trace.call("cudaLaunchKernel", 6, 1)
    trace.mark("forward", 1, 50)
    trace.event("gpu_user_annotation", "ProfilerStep#1", 1, 50)
    trace.event("python_function", "f", 1, 50)
    trace.event("ac2g", "ac2g", 1, 0, ph="s")
    columns = trace_of(trace)
    assert columns.gpu.kind.tolist() == [MEMCPY, KERNEL, MEMSET]
    assert columns.gpu.bytes.tolist() == [64, -1, -1]
    assert (len(columns.ops), len(columns.calls), len(columns.marks)) == (1, 1, 1)
    assert columns.events == 9


def test_the_schema_of_2021():
    trace = TraceBuilder()
    trace.event("Operator", "aten::add", 10, 5, tid="100", args={"External id": 4})
    trace.event("Operator", "ProfilerStep#3", 0, 50, tid="100")
    trace.event("Operator", "enumerate(DataLoader)#_It.__next__", 0, 5, tid="100")
    trace.event("Runtime", "cudaLaunchKernel", 11, 1, args={"correlation": 9, "external id": 4})
    args = {"device": 0, "stream": 7, "correlation": 9, "external id": 4}
    trace.event("Kernel", "k", 20, 5, pid=0, tid="stream 7", args=args)
    trace.event("Memcpy", "Memcpy HtoD", 30, 5, pid=0, tid="stream 7", args=args)
    trace.event("Memset", "Memset (Device)", 40, 5, pid=0, tid="stream 7", args=args)
    columns = trace_of(trace)
    assert columns.gpu.kind.tolist() == [KERNEL, MEMCPY, MEMSET]
    assert columns.gpu.external.tolist() == [4, 4, 4]
    assert len(columns.ops) == 1
    names = [columns.names[name] for name in columns.marks.name.tolist()]
    assert sorted(names) == ["ProfilerStep#3", "enumerate(DataLoader)#_It.__next__"]


@pytest.mark.parametrize("args", [None, 5, "x", [], {}])
def test_arguments_that_are_no_object_are_absent(args):
    trace = ten_kernels()
    for event in trace.events:
        event["args"] = args
    columns = trace_of(trace)
    assert columns.gpu.correlation.tolist() == [0] * 10
    assert columns.gpu.device.tolist() == [-1] * 10


def test_odd_types_in_arguments():
    trace = TraceBuilder()
    trace.gpu("a", 1, 1, correlation="12", stream="0x0", bytes=2**70)
    trace.gpu("b", 2, 1, correlation=13.0, stream=None, bytes=1.5)
    gpu = trace_of(trace).gpu
    assert gpu.correlation.tolist() == [12, 13]
    assert gpu.stream.tolist() == [-1, -1]
    assert gpu.bytes.tolist() == [-1, 1]


def test_impossible_times_are_counted_and_kept_out_of_sums():
    trace = TraceBuilder()
    for dur in (0, -5, "x"):
        trace.gpu("odd", 10, dur)
    del trace.event("kernel", "no duration", 20, 0)["dur"]
    trace.gpu("no time", "x", 5)
    trace.gpu("early", 0, 5)
    trace.gpu("text", "30.5", "2.25")
    columns = trace_of(trace)
    faults = columns.gpu_faults
    assert (faults.zero_duration, faults.negative_duration, faults.no_duration) == (1, 1, 2)
    assert (faults.no_timestamp, faults.zero_timestamp) == (1, 1)
    assert (columns.gpu_recorded, len(columns.gpu)) == (7, 6)
    assert columns.gpu.duration.tolist() == [5000, 0, 0, 0, 0, 2250]


def test_where_the_trace_comes_from():
    trace = ten_kernels(
        distributedInfo={"rank": 1, "world_size": 4},
        deviceProperties=[{"id": 0, "name": "GPU A"}, {"id": 1, "name": "GPU A"}, {"name": ""}],
        baseTimeNanoseconds=123,
    )
    meta = trace_of(trace).meta
    assert (meta.rank, meta.world_size, meta.device_names, meta.base_time_ns) == (
        1,
        4,
        ("GPU A",),
        123,
    )


@pytest.mark.parametrize(("start", "base"), [(1_669_783_687_464_181, 0), (5_196_699_857_704, None)])
def test_absolute_timestamps_need_no_base(start, base):
    trace = TraceBuilder()
    trace.op("aten::add", start, 1)
    assert trace_of(trace).meta.base_time_ns == base


@pytest.mark.parametrize("info", [None, 3, [], {"rank": None}, {"rank": "x"}, {"rank": -1}])
def test_odd_distributed_info_is_no_rank(info):
    assert trace_of(ten_kernels(distributedInfo=info)).meta.rank is None


@pytest.mark.parametrize("dur", [2**62 / 1000, 1e18, 86_400e6 * 4])
def test_durations_of_days_are_none(dur):
    trace = TraceBuilder()
    trace.gpu("k", 10, dur)
    columns = trace_of(trace)
    assert columns.gpu.duration.tolist() == [0]
    assert columns.gpu_faults.no_duration == 1


def test_lists_where_numbers_belong():
    trace = TraceBuilder()
    trace.event("kernel", "k", 10, 5, args={"stream": [1, 2], "correlation": [3]})
    gpu = trace_of(trace).gpu
    assert (gpu.stream.tolist(), gpu.correlation.tolist()) == ([-1], [0])
