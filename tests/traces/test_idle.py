from __future__ import annotations

import pytest

from perfproof.traces.idle import CAUSES, idle
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import by, context_of


def causes(trace):
    return {
        name: (row["count"], row["total_us"])
        for name, row in by(idle(context_of(trace)), "cause").items()
    }


def test_every_cause():
    trace = TraceBuilder()
    trace.step(1, 1000, 1000)
    trace.kernel("head", 1040, 60, launched=1010)  # gap 1000-1040: launched in it
    trace.kernel("late", 1200, 100, launched=1150)  # gap 1100-1200: launched in it
    trace.kernel("flight", 1320, 80, launched=1295, call_dur=20)  # gap 1300-1320: call open
    trace.kernel("queued", 1430, 70, launched=1296, call_dur=2)  # gap 1400-1430: launched before
    trace.gpu("alone", 1600, 50)  # gap 1500-1600: no launch recorded; tail 1650-2000
    assert causes(trace) == {
        "host_late": (2, 140),
        "in_flight": (1, 20),
        "queued_before": (1, 30),
        "unlinked": (1, 100),
        "tail": (1, 350),
    }


def test_gaps_and_busy_time_fill_the_window():
    context = context_of(ten_kernels())
    rows = by(idle(context), "cause")
    assert sum(row["fraction_of_window"] for row in rows.values()) == pytest.approx(90 / 290)
    assert rows["host_late"]["count"] == 9


def test_a_launch_at_the_moment_the_gap_begins_is_late():
    trace = TraceBuilder()
    trace.kernel("a", 1000, 100)
    trace.kernel("b", 1150, 100, launched=1100)
    assert causes(trace)["host_late"] == (1, 50)


def test_without_any_recorded_call():
    trace = TraceBuilder()
    trace.gpu("a", 1000, 100)
    trace.gpu("b", 1150, 100)
    assert causes(trace)["unlinked"] == (1, 50)


def test_events_of_no_duration_end_no_gap():
    trace = TraceBuilder()
    trace.kernel("a", 1000, 100)
    trace.kernel("empty", 1150, 0, launched=1050)
    trace.kernel("b", 1150, 100, launched=1120)
    assert causes(trace)["host_late"] == (1, 50)


def test_all_causes_are_always_listed():
    assert tuple(causes(ten_kernels())) == CAUSES


def test_idle_time_in_the_loader_is_told_apart_by_cause():
    trace = TraceBuilder()
    trace.step(1, 1000, 1000)
    trace.mark("enumerate(DataLoader)#next", 1010, 60)
    trace.mark("enumerate(DataLoader)#next", 1700, 300, tid=5)
    trace.kernel("late", 1100, 100, launched=1080)
    trace.mark("enumerate(DataLoader)#next", 1150, 100)
    rows = by(idle(context_of(trace)), "cause")
    late, tail = rows["host_late"], rows["tail"]
    assert (late["total_us"], late["outside_loader_us"]) == (100, 40)
    assert late["outside_loader_fraction_of_window"] == pytest.approx(0.04)
    assert (tail["total_us"], tail["outside_loader_us"]) == (800, 750)
