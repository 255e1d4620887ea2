"""What runs say of one arm against another: noise, contrast, drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc, stdtr, stdtrit

from perfproof.levers.regression import Array, Fit, Run, fit
from perfproof.schema.loop import Noise

# Runs that one regression holds: enough for some 30 degrees of freedom, and fast.
WINDOW = 40
# A prior counts for at most so many degrees of freedom, and for none where the runs refute it.
_PRIOR_DF = 20.0
_REFUTED = 0.02
_DRIFTED = 0.002
# Distance, in standard deviations, at which a run that was set aside counts in the noise.
_WINSOR = 3.5


@dataclass(frozen=True)
class Contrast:
    """Candidate minus best in ln(figure), and the same without each run in turn."""

    effect: float
    error: float
    df: float
    without: Array
    without_error: Array
    candidate_runs: int
    best_runs: int
    disregarded: int
    noise: Noise

    def p_value(self) -> float:
        """One-sided, against no gain."""
        return float(stdtr(self.df, -self.effect / self.error))

    def p_without_any(self) -> float:
        """The largest p-value that leaving out a single run gives."""
        return float(np.max(stdtr(self.df, -self.without / self.without_error)))

    def bound(self, chance: float) -> float:
        """The effect lies above this with probability `chance` (a confidence bound)."""
        return self.effect - self.error * float(stdtrit(self.df, chance))


def in_window(runs: Sequence[Run]) -> list[Run]:
    """The newest runs, in order."""
    return sorted(runs, key=lambda run: run.position)[-WINDOW:]


def noise_of(runs: Sequence[Run], prior: Noise | None) -> Noise | None:
    """Spread of one run from repetitions within arms, pooled with `prior`; None without either."""
    found = fit(in_window(runs), believed(runs, prior))
    return prior if found is None else _noise(found, prior)


def believed(runs: Sequence[Run], prior: Noise | None) -> Noise | None:
    """The prior as far as it is used: capped, and dropped where the runs contradict it."""
    if prior is None:
        return None
    capped = Noise(sd=prior.sd, df=min(prior.df, _PRIOR_DF), source=prior.source)
    alone = fit(in_window(runs), None)
    if alone is None:
        return capped
    chance = float(fdtrc(alone.df, capped.df, float(alone.weights @ alone.variance) / prior.sd**2))
    return None if chance < _REFUTED else capped


def _noise(found: Fit, prior: Noise | None) -> Noise:
    source = "repetitions in this loop"
    if prior is not None:
        source = f"{source}, pooled with {prior.source}"
    sd = math.sqrt(float(found.weights @ found.variance) * _unlike_gaussian(found))
    return Noise(sd=sd, df=found.df, source=source)


def contrast(
    runs: Sequence[Run], best: str, candidate: str, prior: Noise | None
) -> Contrast | None:
    """Effect of `candidate` over `best`; None before both have runs and the noise is known."""
    window = in_window(runs)
    prior = believed(runs, prior)
    found = fit(window, prior)
    if found is None or not {best, candidate} <= set(found.arms):
        return None
    return _contrast(found, best, candidate, prior)


def _contrast(found: Fit, best: str, candidate: str, prior: Noise | None) -> Contrast:
    """The contrast averaged over rho: means, and variances within and between."""
    sign = np.zeros(len(found.arms))
    sign[found.arms.index(candidate)], sign[found.arms.index(best)] = 1, -1
    effects, weights = found.effects @ sign, sign @ found.gain
    spreads, variance = found.covariance @ sign @ sign, found.variance * _unlike_gaussian(found)
    effect, error = _averaged(found.weights, effects[:, None], (variance * spreads)[:, None])
    own = (sign[found.index] != 0) & ~found.aside
    information = np.maximum(found.projection.diagonal(axis1=1, axis2=2)[:, own], 1e-9)
    shift = weights[:, own]
    without = effects[:, None] - shift * found.residual[:, own] / information
    spread = variance[:, None] * (spreads[:, None] + shift**2 / information)
    less, less_error = _averaged(found.weights, without, spread)
    return Contrast(
        float(effect[0]),
        float(error[0]),
        found.df,
        less,
        less_error,
        *_side_by_side(found, candidate, best),
        _noise(found, prior),
    )


def _side_by_side(found: Fit, candidate: str, best: str) -> tuple[int, int, int]:
    """Runs of each side that count, from the best's last one before the candidate's first, and
    those that do not: set aside, or cut off from the other side.
    """
    ours = np.flatnonzero(found.index == found.arms.index(candidate))
    theirs = np.flatnonzero(found.index == found.arms.index(best))
    theirs = theirs[max(int(np.sum(theirs < ours[0])) - 1, 0) :]
    stretch = np.cumsum(found.cuts)
    mine, others = (stretch[own[~found.aside[own]]].tolist() for own in (ours, theirs))
    both = set(mine) & set(others)
    counts = [sum(place in both for place in places) for places in (mine, others)]
    return counts[0], counts[1], len(ours) + len(theirs) - sum(counts)


def _averaged(weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of a mixture, column by column."""
    mean = weights @ means
    return mean, np.sqrt(weights @ (variances + (means - mean) ** 2))


def _unlike_gaussian(found: Fit) -> float:
    """What runs set aside add to the variance: each counts as one of `_WINSOR` sd."""
    return 1 + int(found.aside.sum()) * _WINSOR**2 / found.df


def drifted(runs: Sequence[Run], best: str, noise: Noise | None) -> bool:
    """Whether the newest run of `best` is not where its earlier ones were."""
    own = [run.value for run in in_window(runs) if run.arm == best]
    if noise is None or len(own) < 3:
        return False
    earlier = own[-9:-1]
    error = noise.sd * math.sqrt(1 + math.pi / 2 / len(earlier))
    distance = abs(own[-1] - float(np.median(earlier))) / error
    return 2 * float(stdtr(noise.df, -distance)) < _DRIFTED


def relative(effect: float) -> float:
    """Relative gain of a difference of logarithms."""
    return math.expm1(min(effect, 50.0))


def interval(found: Contrast) -> tuple[float, float]:
    """95 % interval of the relative gain."""
    return relative(found.bound(0.975)), relative(found.bound(0.025))
