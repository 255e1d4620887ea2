from __future__ import annotations

import pytest

from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import context_of


def us_of(context):
    window = context.window
    return window.kind, window.start / 1000, window.end / 1000


def test_the_window_runs_from_the_first_step_to_the_end_of_the_work_it_launched():
    trace = TraceBuilder()
    trace.step(4, 100, 50)
    trace.step(5, 150, 50)
    trace.kernel("early", 60, 20, launched=50)
    trace.kernel("first", 160, 20, launched=110)
    trace.kernel("late", 220, 30, launched=199)
    trace.kernel("after", 300, 20, launched=200)
    context = context_of(trace)
    assert us_of(context) == ("steps", 100, 250)
    assert context.window.inside.tolist() == [False, True, True, False]
    assert context.steps.of(context.launched).tolist() == [-1, 0, 1, -1]


def test_unlinked_events_belong_by_their_own_start():
    trace = TraceBuilder()
    trace.step(1, 100, 100)
    trace.gpu("before", 95, 10)
    trace.gpu("inside", 150, 10)
    trace.gpu("after", 200, 10)
    assert context_of(trace).window.inside.tolist() == [False, True, False]


def test_without_steps_the_span_of_the_gpu_events():
    assert us_of(context_of(ten_kernels())) == ("gpu_span", 1000, 1290)


def test_steps_that_launched_nothing_do_not_make_the_window():
    trace = ten_kernels()
    trace.step(1, 5000, 10)
    assert us_of(context_of(trace)) == ("gpu_span", 1000, 1290)


def test_events_of_no_duration_count():
    trace = ten_kernels()
    trace.kernel("shorter than the clock", 1100, 0)
    assert context_of(trace).window.inside.sum() == 11


def test_cpu_only():
    trace = TraceBuilder()
    trace.op("a", 10, 5)
    trace.op("b", 30, 10)
    assert us_of(context_of(trace)) == ("cpu_span", 10, 40)
    trace.step(1, 5, 30)
    assert us_of(context_of(trace)) == ("cpu_span", 5, 35)


def test_nothing():
    assert us_of(context_of(TraceBuilder())) == ("empty", 0, 0)


@pytest.mark.parametrize("cat", ["gpu_user_annotation", "python_function"])
def test_only_cpu_annotations_are_steps(cat):
    trace = ten_kernels()
    trace.event(cat, "ProfilerStep#1", 1000, 50)
    assert context_of(trace).steps.number == []


def test_names_that_only_begin_like_a_step_are_none():
    trace = TraceBuilder()
    trace.mark("ProfilerStep#1x", 0, 10)
    trace.mark("ProfilerStep*", 0, 10)
    assert context_of(trace).steps.number == []


def test_a_step_inside_another_one_takes_nothing_from_it():
    trace = TraceBuilder()
    trace.step(1, 100, 100)
    trace.step(9, 110, 5)
    trace.step(2, 200, 50)
    for launched in (105, 112, 150, 210):
        trace.kernel("k", 300 + launched, 5, launched=launched)
    context = context_of(trace)
    assert (context.steps.number, context.steps.nested) == ([1, 2], 1)
    assert context.steps.of(context.launched).tolist() == [0, 0, 0, 1]


def test_the_same_step_twice_counts_once():
    trace = TraceBuilder()
    for _ in range(2):
        trace.step(1, 100, 100)
    trace.step(1, 100, 50)
    steps = context_of(trace).steps
    assert (steps.number, steps.end.tolist(), steps.nested, steps.copies) == ([1], [200_000], 2, 2)


def test_of_two_steps_that_overlap_the_later_owns_from_its_start():
    trace = TraceBuilder()
    trace.step(1, 100, 100)
    trace.step(2, 180, 100)
    for launched in (170, 190, 250):
        trace.kernel("k", 300 + launched, 5, launched=launched)
    context = context_of(trace)
    assert (context.steps.nested, context.steps.overlapping) == (0, 1)
    assert context.steps.of(context.launched).tolist() == [0, 1, 1]
