"""Whole loops with known true effects, through the policy, as the benchmark plays them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.decisions import OURS, Study, played, share, summary
from benchmarks.decisions_loops import Lever, Loop, one_after_another, through_the_policy, welch
from benchmarks.decisions_noise import SCENARIOS

from perfproof.schema.loop import Decision


def test_clear_levers_are_told_apart() -> None:
    noise = np.random.default_rng(1).normal(0, 0.01, 200)
    loop = through_the_policy(Decision())([0.10, -0.10, 0.0, 0.10], noise)
    statuses = [lever.status for lever in loop.levers]
    assert statuses == ["accepted", "rejected", "rejected", "accepted"]
    assert loop.levers[1].runs == 2
    assert loop.baseline_runs == Decision().baseline_runs
    assert loop.regret() == pytest.approx(0.0)


def test_same_loop_whatever_else_is_played() -> None:
    study = Study("gaussian 1.0%", (0.03,), 1, 3)
    both, alone = played(study, [0, 1])[OURS], played(study, [1])[OURS]
    assert both[1] == alone[0]


def test_null_levers_cost_few_runs_and_are_not_accepted() -> None:
    found = summary(played(Study("gaussian 1.0%", (), 0, 25), range(25))[OURS])
    assert found["false_accept_per_loop"]["value"] <= 0.04
    assert found["runs_per_lever"]["null"] <= 6


def test_fixed_repetition_measures_what_it_says() -> None:
    loop = one_after_another(3, welch)([0.0, 0.5], np.random.default_rng(2).normal(0, 0.01, 9))
    assert [lever.status for lever in loop.levers] == ["rejected", "accepted"]
    assert loop.runs == 9


def test_regret_is_what_was_left() -> None:
    loop = Loop([Lever(0.1, "rejected", 4), Lever(-0.1, "accepted", 4)], 16, 8)
    assert loop.regret() == pytest.approx(math.log(1.1) - math.log(0.9))
    assert loop.false_accept()


def test_exact_interval_of_a_share() -> None:
    found = share(0, 300)
    assert found["low"] == 0
    assert found["high"] == pytest.approx(0.0122, abs=1e-4)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_noise_has_the_stated_size(scenario: object) -> None:
    values = scenario.runs(np.random.default_rng(3), 4000)  # type: ignore[attr-defined]
    assert values.shape == (4000,)
    assert np.isfinite(values).all()
    if scenario.name.startswith("gaussian"):  # type: ignore[attr-defined]
        assert np.std(values) == pytest.approx(scenario.sd, rel=0.05)  # type: ignore[attr-defined]
