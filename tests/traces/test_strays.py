from __future__ import annotations

import pytest

from perfproof.traces.strays import stray
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import context_of

SECOND = 1_000_000


def found(trace):
    return next(stray(context_of(trace)), None)


@pytest.mark.parametrize("places", [[-1], [1], [-1, -1], [1, 1, 1], [-1, 1], [-3, -2, 1, 2]])
def test_strays_are_told_by_the_gap_not_by_their_number(places):
    trace = ten_kernels()
    for index, place in enumerate(places):
        trace.gpu("stray", 1000 + place * SECOND + 20 * index, 5)
    finding = found(trace)
    assert (finding.severity, finding.value) == ("bad", len(places))
    assert "from 0.29 to" in finding.message


def test_work_of_a_step_that_runs_long_after_its_launch():
    trace = ten_kernels()
    trace.step(1, 990, 400)
    for index in range(2):
        trace.kernel("late", SECOND + 20 * index, 5, launched=1200 + index)
    assert found(trace).value == 2


def test_few_events_before_the_others_though_launched_there():
    trace = TraceBuilder()
    for index in range(40):
        trace.kernel("k", 1000 + 30 * index, 20)
    trace.kernel("warm-up", 1000 - SECOND, 5)
    assert found(trace).value == 1


def test_a_pause_between_steps_is_real():
    trace = ten_kernels()
    trace.step(1, 990, 400)
    trace.step(2, 1390, SECOND)
    trace.kernel("after the pause", SECOND, 20)
    assert found(trace) is None


def test_a_long_pause_between_two_halves_is_real():
    trace = ten_kernels()
    for index in range(10):
        trace.kernel("late", 2 * SECOND + 30 * index, 20)
    assert found(trace) is None


def test_the_same_without_recorded_launches_cannot_be_told_from_strays():
    trace = ten_kernels()
    for index in range(9):
        trace.gpu("late", 2 * SECOND + 30 * index, 20)
    assert found(trace).value == 9


def test_even_bursts_are_no_strays():
    trace = TraceBuilder()
    for index in range(40):
        trace.kernel("k", 1000 + 30 * index + 500 * (index // 10), 20)
    assert found(trace) is None


def test_events_of_no_duration_stretch_nothing():
    trace = ten_kernels()
    trace.gpu("nothing", SECOND, 0)
    assert found(trace) is None


def test_nothing():
    assert found(TraceBuilder()) is None
