"""The table of steps: rank filter, sizes of all ranks, repeated attempts."""

from __future__ import annotations

import math

import pytest

from perfproof.foms import step_table
from perfproof.foms.step_table import FINITE, NON_FINITE, StepTable


def test_only_the_lowest_rank_is_timed() -> None:
    table = StepTable()
    row = table.lines([2], 0, 0, [4])
    assert row is not None
    table.set_time(row, 9.0)
    row = table.lines([0], 0, 0, [4])
    assert row is not None
    table.set_time(row, 1.0)
    assert table.lines([1, 2], 0, 1, [4, 4]) is None
    steps = table.steps()
    assert steps.time_s.tolist() == [1.0]
    assert steps.reports.tolist() == [2]


def test_different_sizes_of_one_step_are_all_kept() -> None:
    table = StepTable()
    table.lines([0, 1], 0, 0, [4, 4])
    table.lines([0, 1], 0, 1, [4, 2])
    table.lines([2], 0, 1, [3])
    table.lines([2], 0, 0, [4])
    steps = table.steps()
    assert steps.mixed == {1: [4, 2, 3]}
    assert steps.reports.tolist() == [3, 3]


def test_a_second_attempt_in_the_same_log_is_new_steps() -> None:
    table = StepTable()
    for _ in range(2):
        for index in range(3):
            table.lines([0], 0, index)
    assert table.steps().index.tolist() == [0, 1, 2, 0, 1, 2]


def test_losses_know_finite_from_not() -> None:
    table = StepTable()
    for index, loss in enumerate((1.0, math.nan, -math.inf)):
        row = table.lines([0], 0, index)
        assert row is not None
        table.set_loss(row, loss)
    assert table.steps().loss_state.tolist() == [FINITE, NON_FINITE, NON_FINITE]


def test_a_step_is_timed_once() -> None:
    table = StepTable()
    table.time_newest(1.0)
    table.lines([0], 0, 0)
    table.time_newest(2.0)
    table.time_newest(3.0)
    assert table.steps().time_s.tolist() == [2.0]


def test_remembered_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_table, "_REMEMBERED_STEPS", 8)
    table = StepTable()
    for index in range(100):
        table.lines([0], 0, index)
        assert len(table._recent) <= 8
    assert len(table) == 100


def test_sizes_of_another_ranks_log_are_added_to_the_same_steps() -> None:
    one, two = StepTable(), StepTable()
    for index in range(3):
        one.lines([0], 0, index, [4])
        two.lines([1], 0, index, [4 if index < 2 else 1])
    one.add_sizes_of(two)
    steps = one.steps()
    assert steps.reports.tolist() == [2, 2, 2]
    assert steps.mixed == {2: [4, 1]}


def test_sizes_are_added_by_step_where_another_ranks_log_lacks_some() -> None:
    one, two = StepTable(), StepTable()
    for epoch, index in ((0, 0), (0, 1), (1, 0), (0, 1)):
        one.lines([0], epoch, index, [8])
    for epoch, index, size in ((0, 1, 2), (7, 7, 9), (1, 0, 3), (0, 1, 4)):
        two.lines([1], epoch, index, [size])
    one.add_sizes_of(two)
    assert one.steps().mixed == {1: [8, 2], 2: [8, 3], 3: [8, 4]}
    assert one.steps().reports.tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize("seconds", [0.0, -0.25, math.inf, 1e300, 1e-300])
def test_what_is_no_duration_is_counted(seconds: float) -> None:
    table = StepTable()
    row = table.lines([0], 0, 0)
    assert row is not None
    table.set_time(row, seconds)
    assert table.bad_times == 1
    assert math.isnan(table.steps().time_s[0])
    table.set_time(row, math.nan)
    assert table.bad_times == 1


def test_visits_to_epochs() -> None:
    table = StepTable()
    for epoch, index in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 0), (1, 1), (0, 0)):
        table.lines([0], epoch, index)
    steps = table.steps()
    assert steps.visits().tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert steps.restarts().tolist() == [False] * 4 + [True, False, True]
