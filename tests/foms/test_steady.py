"""Which steps count."""

from __future__ import annotations

import numpy as np

from perfproof.foms.steady import Profiled, profiled_steps, steady_steps, why_none
from perfproof.foms.step_table import Steps, StepTable
from perfproof.schema.base import Reason


def made(*epochs: int, unknown: tuple[int, ...] = ()) -> Steps:
    """Steps of epochs of the given lengths; `unknown` run indices have no time."""
    table, at = StepTable(), 0
    for epoch, length in enumerate(epochs):
        for index in range(length):
            row = table.lines([0], epoch, index)
            assert row is not None
            if at not in unknown:
                table.set_time(row, 1.0)
            at += 1
    return table.steps()


def steady(steps: Steps, window: Profiled | None = None) -> list[int]:
    profiled = profiled_steps(steps, window or Profiled())
    return np.flatnonzero(steady_steps(steps, profiled)).tolist()


def test_first_epoch_and_first_steps_are_dropped() -> None:
    assert steady(made(4, 3, 3)) == [5, 6, 8, 9]


def test_a_single_epoch_loses_a_fifth_but_at_least_three() -> None:
    assert steady(made(6)) == [3, 4, 5]
    assert steady(made(20)) == list(range(4, 20))
    assert steady(made(3)) == []


def test_a_second_epoch_without_a_steady_step_leaves_the_first() -> None:
    assert steady(made(6, 1)) == [3, 4, 5]


def test_steps_without_a_time_do_not_count() -> None:
    assert steady(made(6, unknown=(4,))) == [3, 5]


def test_a_profiled_epoch_is_dropped_whole() -> None:
    assert steady(made(6, 4), Profiled(epochs=frozenset({1}))) == [3, 4, 5]


def test_trace_steps_take_their_warmup_and_the_export_with_them() -> None:
    window = Profiled(trace_steps=frozenset({8, 9}), warmup_steps=2)
    assert steady(made(14), window) == [3, 4, 5, 11, 12, 13]
    window = Profiled(trace_steps=frozenset({8, 9}))
    assert np.flatnonzero(profiled_steps(made(14), window)).tolist() == [5, 6, 7, 8, 9, 10]


def test_trace_steps_within_an_epoch_of_unknown_number_are_dropped_from_all() -> None:
    window = Profiled(trace_steps=frozenset({4}), by_epoch=True, warmup_steps=1)
    assert steady(made(7, 7, 7), window) == [8, 9, 13, 15, 16, 20]


def test_a_known_profiled_epoch_makes_trace_steps_needless() -> None:
    window = Profiled(epochs=frozenset({2}), trace_steps=frozenset({4}), by_epoch=True)
    assert steady(made(3, 7, 7), window) == [4, 5, 6, 7, 8, 9]


def test_reasons() -> None:
    none = np.zeros(2, dtype=bool)
    assert why_none(made(2), none) is Reason.NO_STEADY_STEP
    assert why_none(made(2, unknown=(0, 1)), none) is Reason.NO_STEP_TIMES_IN_LOG
    steps = made(6, 4)
    profiled = profiled_steps(steps, Profiled(epochs=frozenset({0, 1})))
    assert why_none(steps, profiled) is Reason.ONLY_PROFILED
