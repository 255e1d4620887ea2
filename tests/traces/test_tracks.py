from __future__ import annotations

import json

from perfproof.traces.tracks import Slice, Track, free_pid, trace_events, tracks
from tests.traces.builder import TraceBuilder
from tests.traces.make import context_of


def test_a_step_that_overlaps_the_next_ends_there():
    trace = TraceBuilder()
    trace.step(1, 0, 150)
    trace.step(2, 100, 100)
    found = tracks(context_of(trace), [])
    assert [(one.name, one.start, one.end) for one in found[0].slices] == [
        ("step 1", 0, 100_000),
        ("step 2", 100_000, 200_000),
    ]


def test_exposed_copies_are_those_beside_no_other_work():
    trace = TraceBuilder()
    trace.kernel("gemm", 1000, 100)
    trace.kernel("ncclDevKernel_AllReduce", 1080, 60, stream=9)
    trace.kernel("Memcpy HtoD (Pinned -> Device)", 1100, 90, cat="gpu_memcpy", stream=11)
    found = {track.name: track.slices for track in tracks(context_of(trace), [])}
    (comm,), (copy,) = found["exposed communication"], found["exposed memcpy"]
    assert (comm.start, comm.end) == (1_100_000, 1_140_000)
    assert (copy.start, copy.end) == (1_140_000, 1_190_000)


def test_a_free_process():
    assert free_pid([]) == 1_000_000_000
    assert free_pid([1_000_000_000, "1000000001"]) == 1_000_000_002


def test_events():
    found = trace_events([Track("row", [Slice("a", -1, 1501), Slice("empty", 5, 5)])], 7)
    events = [json.loads(text) for text in found]
    assert [event["name"] for event in events] == [
        "process_name",
        "process_sort_index",
        "thread_name",
        "thread_sort_index",
        "a",
    ]
    assert b'"ts":-0.001,"dur":1.502' in found[-1]
