"""Bounds of the group-sequential test: the total error is what was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from perfproof.levers.sequential import SPENDING_POWER, p_bounds

FRACTIONS = (2 / 6, 3 / 6, 4 / 6, 5 / 6, 1.0)


def test_single_look_spends_everything() -> None:
    assert p_bounds(0.01, (1.0,)) == pytest.approx((0.01,), rel=1e-3)


def test_first_look_of_two_spends_its_share() -> None:
    assert p_bounds(0.05, (0.5, 1.0))[0] == pytest.approx(0.05 * 0.5**SPENDING_POWER, rel=1e-3)


def test_bounds_grow_and_stay_below_the_total() -> None:
    bounds = p_bounds(0.001, FRACTIONS)
    assert list(bounds) == sorted(bounds)
    assert bounds[-1] < 0.001


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_total_error_of_brownian_paths(alpha: float) -> None:
    paths = 200_000
    steps = np.diff([0.0, *FRACTIONS])
    scores = np.cumsum(np.random.default_rng(1).normal(0, np.sqrt(steps), (paths, 5)), axis=1)
    limits = norm.isf(p_bounds(alpha, FRACTIONS))
    crossed = np.mean(np.any(scores / np.sqrt(FRACTIONS) > limits, axis=1))
    assert crossed == pytest.approx(alpha, abs=4 * np.sqrt(alpha / paths))
