"""Ratios with intervals, against SciPy and against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perfproof.foms.welch import interval_of, ratio_of

values = st.lists(st.floats(0.1, 1e4), min_size=2, max_size=6)


@settings(deadline=None, max_examples=50)
@given(values, values)
def test_interval_is_that_of_scipys_welch_test(a: list[float], b: list[float]) -> None:
    if min(np.ptp(np.log(a)), np.ptp(np.log(b))) < 1e-3:  # SciPy warns of lost precision
        return
    expected = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(0.95)
    assert np.log(interval_of(a, b, 0.95) or ()) == pytest.approx(
        [expected.low, expected.high], rel=1e-6
    )


@settings(deadline=None, max_examples=50)
@given(values, values)
def test_swapping_sides_inverts_everything(a: list[float], b: list[float]) -> None:
    there, back = interval_of(a, b, 0.9), interval_of(b, a, 0.9)
    assert there is not None
    assert back is not None
    assert ratio_of(a, b) == pytest.approx(1 / ratio_of(b, a))
    assert there == pytest.approx([1 / back[1], 1 / back[0]])


def test_one_run_takes_the_variance_of_the_other_side() -> None:
    a, b = [100.0, 110.0, 90.0], [130.0]
    x = np.log(a)
    margin = stats.t.ppf(0.975, 2) * x.std(ddof=1) * np.sqrt(1 / 3 + 1)
    middle = np.log(130) - x.mean()
    expected = np.exp([middle - margin, middle + margin])
    assert interval_of(a, b, 0.95) == pytest.approx(expected)
    assert interval_of(b, a, 0.95) == pytest.approx(1 / expected[::-1])


def test_one_against_one_has_none_and_equal_runs_have_a_point() -> None:
    assert interval_of([1.0], [2.0], 0.95) is None
    assert interval_of([2.0, 2.0], [3.0, 3.0], 0.95) == pytest.approx((1.5, 1.5))


def test_five_percent_of_intervals_of_equal_sides_miss_one() -> None:
    generator = np.random.default_rng(0)
    misses = 0
    for _ in range(2000):
        a, b = np.exp(generator.normal(0, 0.1, (2, 4)))
        low, high = interval_of(a.tolist(), b.tolist(), 0.95) or (0, 0)
        misses += not low <= 1 <= high
    assert 0.035 < misses / 2000 < 0.065
