from __future__ import annotations

import pytest

from perfproof.traces.durations import endless_event, same_stream_overlap, zero_severity
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import context_of


def overlap(trace):
    return next(same_stream_overlap(context_of(trace)), None)


def endless(trace):
    return next(endless_event(context_of(trace)), None)


def kernels(zero, real, duration):
    trace = TraceBuilder()
    for index in range(zero + real):
        trace.kernel("k", 1000 + 50 * index, 0 if index < zero else duration + index % 2)
    return trace


@pytest.mark.parametrize(
    ("zero", "real", "duration", "severity"),
    [
        (30, 0, 0, "bad"),
        (1, 120, 20.125, "info"),
        (2, 98, 20.125, "bad"),
        (4, 30, 20, "info"),  # a clock of whole microseconds: at most 4 of 600 us are hidden
        (20, 30, 20, "warn"),
        (40, 30, 20, "bad"),
    ],
)
def test_zero_durations_are_bad_unless_the_clock_is_that_coarse(zero, real, duration, severity):
    assert zero_severity(context_of(kernels(zero, real, duration))) == severity


def test_kernels_one_after_the_other_do_not_overlap():
    assert overlap(ten_kernels()) is None


def test_durations_that_run_over_their_successors():
    trace = ten_kernels()
    trace.kernel("overflow", 1000, 290)
    finding = overlap(trace)
    assert (finding.severity, finding.value) == ("bad", 200)


def test_kernels_on_two_streams_may_overlap():
    trace = ten_kernels()
    trace.kernel("beside", 1000, 290, stream=9)
    assert overlap(trace) is None


def test_a_long_duration_does_not_hide_itself_in_the_busy_time():
    trace = ten_kernels()
    trace.kernel("corrupt", 1100, 1e9)
    finding = overlap(trace)
    assert (finding.severity, finding.value) == ("bad", 10 + 6 * 20)
    assert "run up to 999999980.0 us into their successors" in finding.message


def test_a_corrupt_duration_just_before_the_last_event():
    trace = ten_kernels()
    trace.kernel("corrupt", 1260, 1e9)
    assert overlap(trace).severity == "bad"


def test_a_small_overlap_is_information():
    trace = TraceBuilder()
    for index in range(100):
        trace.kernel("k", 1000 + 30 * index, 30.01 if index == 5 else 30)
    finding = overlap(trace)
    assert (finding.severity, finding.value) == ("info", pytest.approx(0.01))


def test_an_event_of_no_duration_is_no_successor():
    trace = ten_kernels()
    trace.kernel("mark", 1010, 0)
    assert overlap(trace) is None


@pytest.mark.parametrize("stream", [7, 9])
def test_an_event_that_runs_on_alone(stream):
    trace = ten_kernels()
    trace.kernel("corrupt", 1300, 1e9, stream=stream)
    finding = endless(trace)
    assert (finding.severity, finding.value) == ("bad", 1)
    assert "corrupt" in finding.message


def test_two_corrupt_durations_do_not_hide_each_other():
    trace = ten_kernels()
    for index in range(10):
        trace.kernel("more", 1300 + 30 * index, 20)
    for stream in (8, 9):
        trace.kernel("corrupt", 1200, 1e9, stream=stream)
    assert endless(trace).value == 2


def test_a_long_kernel_that_the_host_waits_for_is_none():
    trace = ten_kernels()
    trace.kernel("long", 1300, 1e6)
    trace.call("cudaDeviceSynchronize", 1310, 1e6)
    assert endless(trace) is None


def test_a_trace_of_few_events_is_not_judged():
    trace = TraceBuilder()
    trace.kernel("short", 1000, 1)
    trace.kernel("long", 1010, 1e6)
    assert endless(trace) is None


def test_nothing():
    context = context_of(TraceBuilder())
    assert [*same_stream_overlap(context), *endless_event(context)] == []
