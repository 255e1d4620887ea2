from __future__ import annotations

from perfproof.traces.link import link
from tests.traces.builder import TraceBuilder
from tests.traces.make import trace_of


def linked(trace):
    columns = trace_of(trace)
    links = link(columns)
    ops = [columns.names[columns.ops.name[op]] if op >= 0 else None for op in links.op.tolist()]
    calls = [
        columns.names[columns.calls.name[call]] if call >= 0 else None
        for call in links.call.tolist()
    ]
    return calls, ops


def test_by_correlation_and_the_innermost_operation_around_the_launch():
    trace = TraceBuilder()
    trace.op("outer", 0, 100)
    trace.op("inner", 10, 20)
    trace.kernel("a", 200, 5, launched=15)
    trace.kernel("b", 210, 5, launched=50, call="cuLaunchKernelEx")
    trace.kernel("c", 220, 5, launched=150)
    calls, ops = linked(trace)
    assert calls == ["cudaLaunchKernel", "cuLaunchKernelEx", "cudaLaunchKernel"]
    assert ops == ["inner", "outer", None]


def test_operations_of_another_thread_do_not_count():
    trace = TraceBuilder()
    trace.op("elsewhere", 0, 100, tid=7)
    trace.kernel("a", 200, 5, launched=15)
    assert linked(trace)[1] == [None]


def test_without_a_launch_the_external_id_names_the_operation():
    trace = TraceBuilder()
    trace.op("named", 0, 10, args={"External id": 77})
    trace.gpu("a", 200, 5, correlation=5, **{"External id": 77})
    trace.gpu("b", 210, 5, correlation=77, **{"External id": 77})  # repeats its correlation
    assert linked(trace) == ([None, None], ["named", None])


def test_one_graph_launch_for_many_kernels():
    trace = TraceBuilder()
    correlation = trace.call("cudaGraphLaunch", 10, 2)
    for index in range(10):
        trace.gpu("k", 20 + 30 * index, 20, correlation=correlation)
    assert linked(trace)[0] == ["cudaGraphLaunch"] * 10


def test_no_correlation_links_nothing():
    trace = TraceBuilder()
    trace.event("cuda_runtime", "cudaLaunchKernel", 1, 1)
    trace.gpu("a", 5, 1)
    trace.gpu("b", 7, 1, correlation=0)
    assert linked(trace) == ([None, None], [None, None])
