"""Decisions on runs: recorded identical runs, properties under any data, errors under the null."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.levers.statistics import Run, confirm, detectable, judge, next_arm, noise_of
from perfproof.schema.base import Reason
from perfproof.schema.loop import Decision, Noise

BEST, CANDIDATE = "baseline", "lever"
DECISION = Decision()
# Medians of steps, ms, of identical runs (docs/decisions.md).
RECORDED = {
    "hydragnn_mace": (88.15, 106.74, 107.83, 140.66, 101.01),
    "hydragnn_egnn": (63.21, 64.15, 65.64),
    "orbit2": (242.57, 250.06, 242.39, 248.39, 242.64),
}


def runs_of(arms: str, values: list[float]) -> list[Run]:
    """B: the best, C: the candidate, other letters: arms of their own."""
    names = {"B": BEST, "C": CANDIDATE}
    return [
        Run(names.get(arm, arm), place, value)
        for place, (arm, value) in enumerate(zip(arms, values, strict=True))
    ]


def noisy(arms: str, effect: float, sd: float, seed: int) -> list[Run]:
    noise = np.random.default_rng(seed).normal(0, sd, len(arms))
    return runs_of(
        arms, [effect * (arm == "C") + float(e) for arm, e in zip(arms, noise, strict=True)]
    )


def verdict(runs: list[Run], levers: int = 10) -> str:
    return judge(runs, BEST, CANDIDATE, levers, DECISION, None).verdict


@pytest.mark.parametrize("name", sorted(RECORDED))
@pytest.mark.parametrize("levers", [1, 10])
def test_recorded_identical_runs_never_differ(name: str, levers: int) -> None:
    times = RECORDED[name]
    for arms in itertools.product("BC", repeat=len(times)):
        for order in itertools.permutations(times) if len(times) < 5 else [times, times[::-1]]:
            runs = runs_of("".join(arms), [-math.log(t) for t in order])
            assert verdict(runs, levers) != "accept", (arms, order)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_recorded_runs_after_all_of_them_as_baseline(name: str) -> None:
    """The same runs once as repetitions of the baseline, then dealt to both sides."""
    values = [-math.log(t) for t in RECORDED[name]]
    for arms in itertools.product("BC", repeat=len(values)):
        runs = runs_of("B" * len(values) + "".join(arms), values + values)
        assert verdict(runs) != "accept", arms


def test_clear_gain_is_accepted_and_reported() -> None:
    found = judge(noisy("BBBBBCBCBCB", 0.08, 0.01, 1), BEST, CANDIDATE, 10, DECISION, None)
    assert found.verdict == "accept"
    assert found.interval is not None
    assert found.interval[0] < math.expm1(0.08) < found.interval[1]
    assert found.shrunk is not None
    assert found.effect is not None
    assert 0 < found.shrunk < found.effect
    assert (found.candidate_runs, found.best_runs) == (3, 8)


def test_accept_needs_a_run_of_the_best_after_the_last_of_the_candidate() -> None:
    runs = noisy("BBBBBCBCBCB", 0.08, 0.01, 1)
    assert verdict(runs) == "accept"
    assert verdict(runs[:-1]) == "again"


def test_single_run_decides_nothing() -> None:
    assert verdict(noisy("BBBBBBBBBBCB", 1.0, 0.001, 1)) == "again"
    assert verdict(noisy("BBBBBBBBBBC", -1.0, 0.001, 1)) == "again"


def test_hopeless_lever_ends_after_two_runs() -> None:
    runs = noisy("BBBBB", 0.0, 0.01, 2)
    assert next_arm(runs, BEST, CANDIDATE, DECISION) == CANDIDATE
    runs = noisy("BBBBBC", -0.1, 0.01, 2)
    assert next_arm(runs, BEST, CANDIDATE, DECISION) == CANDIDATE
    assert verdict(noisy("BBBBBCC", -0.1, 0.01, 2)) == "reject"


def test_promising_lever_alternates_and_ends_with_the_best() -> None:
    arms = "BBBBB"
    for _ in range(DECISION.max_runs_per_lever):
        arm = next_arm(noisy(arms, 0.03, 0.01, 3), BEST, CANDIDATE, DECISION)
        arms += "B" if arm == BEST else "C"
    assert arms == "BBBBB" + "CB" * 6


def test_budget_of_a_lever_ends_it() -> None:
    runs = noisy("BBBBB" + "CB" * 6, 0.0, 0.18, 4)
    assert verdict(runs) in ("inconclusive", "reject")


def test_too_few_runs_say_so() -> None:
    found = judge(runs_of("BC", [0.0, 0.1]), BEST, CANDIDATE, 10, DECISION, None)
    assert found.verdict == "again"
    assert found.effect is None
    assert found.reasons["effect"] is Reason.TOO_FEW_VALUES
    with_prior = judge(
        runs_of("BC", [0.0, 0.1]),
        BEST,
        CANDIDATE,
        10,
        DECISION,
        Noise(sd=0.01, df=4, source="an earlier loop"),
    )
    assert with_prior.noise is not None


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-6, 1e6), st.floats(-0.05, 0.1))
def test_unit_of_the_figure_changes_nothing(seed: int, factor: float, effect: float) -> None:
    runs = noisy("BBBBBaBaBbBCBCB", effect, 0.01, seed)
    scaled = [Run(run.arm, run.position, run.value + math.log(factor)) for run in runs]
    one, other = (judge(r, BEST, CANDIDATE, 10, DECISION, None) for r in (runs, scaled))
    assert one.verdict == other.verdict
    assert one.effect == pytest.approx(other.effect, abs=1e-8)
    assert one.interval == pytest.approx(other.interval, abs=1e-8)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_names_and_listing_of_arms_change_nothing(seed: int, random: object) -> None:
    runs = noisy("BBBBBaBaBbBCBCB", 0.03, 0.01, seed)
    renamed = [Run({"a": "zz", "b": "A"}.get(r.arm, r.arm), r.position, r.value) for r in runs]
    random.shuffle(renamed)  # type: ignore[attr-defined]
    one, other = (judge(r, BEST, CANDIDATE, 10, DECISION, None) for r in (runs, renamed))
    assert one.verdict == other.verdict
    assert one.interval == pytest.approx(other.interval, abs=1e-9)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10), st.floats(0.2, 3.0), st.sampled_from([-1, 1]))
def test_huge_outlier_never_makes_an_accept(seed: int, place: int, size: float, sign: int) -> None:
    runs = noisy("BBBBBCBCBCB", 0.0, 0.01, seed)
    if verdict(runs) == "accept":
        return
    hit = runs[place]
    runs[place] = Run(hit.arm, hit.position, hit.value + sign * size)
    assert verdict(runs) != "accept"


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_drift_does_not_narrow_the_interval(seed: int) -> None:
    runs = noisy("BBBBB" + "CB" * 4, 0.0, 0.01, seed)
    walk = np.cumsum(np.random.default_rng(seed + 1).normal(0, 1, len(runs)))
    widths = []
    for size in (0.0, 0.1):
        moved = [
            Run(r.arm, r.position, r.value + size * w) for r, w in zip(runs, walk, strict=True)
        ]
        found = judge(moved, BEST, CANDIDATE, 10, DECISION, None)
        assert found.interval is not None
        widths.append(found.interval[1] - found.interval[0])
    assert widths[1] > widths[0]


@pytest.mark.parametrize("arms", ["BBBBBCBCB", "BBBBBaaBbBCBCBCBCB"])
def test_p_values_are_valid_under_the_null(arms: str) -> None:
    p_values = []
    for seed in range(600):
        found = judge(noisy(arms, 0.0, 0.01, seed), BEST, CANDIDATE, 10, DECISION, None)
        assert found.p_value is not None
        p_values.append(found.p_value)
    for level in (0.01, 0.05, 0.2):
        allowed = level + 3 * math.sqrt(level * (1 - level) / len(p_values))
        assert np.mean(np.array(p_values) < level) <= allowed


def test_interval_covers_the_truth() -> None:
    hits = 0
    for seed in range(400):
        found = confirm(noisy("CBBCCBBC", 0.03, 0.01, seed), CANDIDATE, BEST, None)
        assert found.interval is not None
        hits += found.interval[0] <= math.expm1(0.03) <= found.interval[1]
    assert hits / 400 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)


def test_confirmation_counts_only_the_two_trials() -> None:
    runs = noisy("CBBCCBBC", 0.2, 0.01, 5)
    found = confirm([*runs, Run("other", 8, 5.0)], CANDIDATE, BEST, None)
    assert (found.candidate_runs, found.best_runs) == (4, 4)
    assert found.effect == pytest.approx(math.expm1(0.2), abs=0.03)
    assert found.verdict == "accept"


def test_detectable_effect_at_recorded_noises() -> None:
    dispatch = detectable(Noise(sd=0.178, df=4, source="A/A"), 10, DECISION)
    compute = detectable(Noise(sd=0.015, df=4, source="A/A"), 10, DECISION)
    assert dispatch > 0.25
    assert 0.03 < compute < 0.06
    assert detectable(Noise(sd=0.015, df=40, source="A/A"), 10, DECISION) < compute


def test_noise_is_pooled_with_a_prior_that_fits_and_not_with_one_that_does_not() -> None:
    runs = noisy("BBBBB", 0.0, 0.01, 6)
    alone = noise_of(runs, None)
    assert alone is not None
    assert alone.df == 4
    near = noise_of(runs, Noise(sd=alone.sd, df=8, source="catalog"))
    assert near is not None
    assert near.df == 12
    far = noise_of(runs, Noise(sd=1e-4, df=8, source="catalog"))
    assert far is not None
    assert far.df == 4
    assert noise_of(runs[:1], None) is None


def test_noise_of_recorded_runs() -> None:
    mace = noise_of(runs_of("BBBBB", [-math.log(t) for t in RECORDED["hydragnn_mace"]]), None)
    orbit2 = noise_of(runs_of("BBBBB", [-math.log(t) for t in RECORDED["orbit2"]]), None)
    assert mace is not None
    assert orbit2 is not None
    assert mace.sd == pytest.approx(0.17, abs=0.05)
    assert orbit2.sd == pytest.approx(0.015, abs=0.005)
