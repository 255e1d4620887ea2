"""Candidate against best: counts side by side, leaving one out, drift of the best."""

from __future__ import annotations

import numpy as np

from perfproof.levers.contrast import contrast, drifted
from perfproof.levers.regression import Run
from perfproof.schema.loop import Noise

NOISE = Noise(sd=0.01, df=7, source="A/A")


def runs_of(arms: str, shift: dict[int, float] | None = None, seed: int = 1) -> list[Run]:
    noise = np.random.default_rng(seed).normal(0, 0.01, len(arms))
    return [Run(arm, n, float(noise[n]) + (shift or {}).get(n, 0.0)) for n, arm in enumerate(arms)]


def test_effect_without_any_single_run_is_the_refitted_effect() -> None:
    runs = runs_of("BBBBBCBCB", {5: 0.05, 7: 0.05})
    found = contrast(runs, "B", "C", None)
    assert found is not None
    assert len(found.without) == len(runs)
    # The weakest of them lies below the effect of all runs, and is less sure.
    assert found.p_without_any() > found.p_value()
    assert np.all(found.without_error > found.error)


def test_run_of_the_best_set_aside_does_not_count() -> None:
    found = contrast(runs_of("BBBBBBBBCBCB", {9: -0.4}), "B", "C", None)
    assert found is not None
    assert (found.candidate_runs, found.best_runs, found.disregarded) == (2, 2, 1)


def test_runs_before_a_jump_do_not_count_as_neighbours() -> None:
    moved = dict.fromkeys(range(8, 13), 0.2)
    found = contrast(runs_of("BBBBBBBBCBCB", moved), "B", "C", None)
    assert found is not None
    assert (found.candidate_runs, found.best_runs, found.disregarded) == (2, 2, 1)


def test_no_contrast_without_both_sides() -> None:
    assert contrast(runs_of("BBBBB"), "B", "C", None) is None


def test_drift_of_the_best_is_seen_and_noise_is_not() -> None:
    assert not drifted(runs_of("BBBBBB"), "B", NOISE)
    assert drifted(runs_of("BBBBBB", {5: -0.1}), "B", NOISE)
    assert not drifted(runs_of("BB", {1: 0.5}), "B", NOISE)
    assert not drifted(runs_of("BBBBBB", {5: -0.1}), "B", None)
