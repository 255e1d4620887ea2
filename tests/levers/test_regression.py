"""The regression over a loop's runs: what is set aside, what counts as drift."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from perfproof.levers.regression import Run, fit


def runs_of(values: list[float], arms: str) -> list[Run]:
    return [Run(arm, n, v) for n, (arm, v) in enumerate(zip(arms, values, strict=True))]


def gaussian(count: int, seed: int = 1) -> list[float]:
    return [float(v) for v in np.random.default_rng(seed).normal(0, 0.01, count)]


def test_nothing_to_learn_from_one_run_an_arm() -> None:
    assert fit(runs_of([0.0, 0.1, 0.2], "abc")) is None


def test_three_runs_of_two_arms_set_nothing_aside() -> None:
    found = fit(runs_of([0.0, 0.5, 0.01], "aba"))
    assert found is not None
    assert not found.aside.any()
    assert not found.cuts.any()


def test_gross_outlier_is_set_aside_and_an_ordinary_run_is_not() -> None:
    values = gaussian(12)
    values[4] -= 0.3
    found = fit(runs_of(values, "a" * 12))
    assert found is not None
    assert list(np.flatnonzero(found.aside)) == [4]
    clean = fit(runs_of(gaussian(12), "a" * 12))
    assert clean is not None
    assert not clean.aside.any()


def test_jump_between_days_is_cut_and_the_effect_survives() -> None:
    arms = "aaaaaababaababab"
    effect = [0.05 * (arm == "b") + 0.2 * (n >= 9) for n, arm in enumerate(arms)]
    values = [e + v for e, v in zip(effect, gaussian(len(arms)), strict=True)]
    found = fit(runs_of(values, arms))
    assert found is not None
    assert list(np.flatnonzero(found.cuts)) == [9]
    (difference,) = (found.effects[int(np.argmax(found.weights))] @ [[-1.0], [1.0]]).tolist()
    assert difference == pytest.approx(0.05, abs=0.02)


def test_drift_shifts_the_weights_to_a_larger_rho() -> None:
    walk = np.cumsum(np.random.default_rng(6).normal(0, 0.05, 30))
    still = fit(runs_of(gaussian(30), "ab" * 15))
    moving = fit(
        runs_of([v + float(w) for v, w in zip(gaussian(30), walk, strict=True)], "ab" * 15)
    )
    assert still is not None
    assert moving is not None
    assert moving.weights[-1] > 0.5 > still.weights[-1]


def test_without_drift_it_is_nearly_the_two_sample_t_test() -> None:
    values = gaussian(12, 3)
    found = fit(runs_of(values, "ab" * 6))
    assert found is not None
    expected = float(np.mean(values[1::2]) - np.mean(values[::2]))
    assert found.effects[0] @ [-1, 1] == pytest.approx(expected, abs=0.002)
    error = np.sqrt(found.variance[0] * (np.array([-1, 1]) @ found.covariance[0] @ [-1, 1]))
    classical = expected / ttest_ind(values[1::2], values[::2]).statistic
    assert error == pytest.approx(classical, rel=0.1)
    assert found.df == 10
