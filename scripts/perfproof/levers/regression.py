"""One regression over the runs of a loop: arm effects, slow drift, runs and gaps that stand out.

y_i = arm(i) + level_i + noise_i, noise ~ N(0, s^2), level a random walk over positions with
variance rho s^2 a step. Fitted by generalised least squares at each rho of a grid; what follows is
averaged over rho by restricted likelihood. A run or a gap between runs whose deletion statistic is
too large is set aside: its variance becomes, in effect, infinite (auxiliary residuals: Harvey &
Koopman 1992; de Jong & Penzer 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from perfproof.schema.loop import Noise

Array = NDArray[np.float64]

RHO = np.array([0.02, 0.1, 0.4, 1.6])
RHO_PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
# Variance, in units of one run's, of what is set aside.
_SET_ASIDE = 1e6
# Chance that a fit of Gaussian runs sets anything aside.
STANDS_OUT = 0.01
_TINY = 1e-9


@dataclass(frozen=True)
class Run:
    """One valid run: ln(figure) oriented so that higher is better, and its place in the loop."""

    arm: str
    position: int
    value: float


@dataclass(frozen=True)
class Fit:
    """The fitted regression, in units of ln(figure). First axis: rho of the grid.

    `projection` is P = V^-1 - V^-1 X (X'V^-1 X)^-1 X'V^-1 and `residual` is P y; row a of `gain`
    turns y into the effect of arm a; `covariance` is that of the arm effects over `variance`.
    `weights` say how likely each rho is.
    """

    arms: list[str]
    index: NDArray[np.intp]
    weights: Array
    variance: Array
    df: float
    effects: Array
    gain: Array
    covariance: Array
    projection: Array
    residual: Array
    aside: NDArray[np.bool_]
    cuts: NDArray[np.bool_]


@dataclass(frozen=True)
class _Data:
    """What a fit is made from: arm of each run, values, steps between runs, noise known before."""

    arms: list[str]
    index: NDArray[np.intp]
    values: Array
    gaps: Array
    prior: Noise | None


def fit(runs: Sequence[Run], prior: Noise | None = None) -> Fit | None:
    """Fit runs sorted by position; None when nothing tells how much runs vary."""
    arms = sorted({run.arm for run in runs})
    if len(runs) - len(arms) < 1:
        return None
    index = np.array([arms.index(run.arm) for run in runs])
    values = np.array([run.value for run in runs])
    at = np.array([run.position for run in runs], dtype=np.float64)
    gaps = np.concatenate([[0.0], at[1:] - at[:-1]])
    return _without_what_stands_out(_Data(arms, index, values - values.mean(), gaps, prior))


def _without_what_stands_out(data: _Data) -> Fit:
    """Set the worst run or gap aside until none stands out or a third of the runs is gone."""
    aside, cuts = np.zeros((2, len(data.values)), bool)
    found = _solve(data, aside, cuts)
    for _ in range(len(data.values) // 3):
        kind, place = _worst(found)
        if kind is None:
            break
        (aside if kind == "run" else cuts)[place] = True
        found = _solve(data, aside, cuts)
    return found


def _solve(data: _Data, aside: NDArray[np.bool_], cuts: NDArray[np.bool_]) -> Fit:
    """Generalised least squares at each rho of the grid, with the likelihood of each."""
    design = np.eye(len(data.arms))[data.index]
    base = np.diag(1 + _SET_ASIDE * aside) + _walk(_SET_ASIDE * cuts.astype(np.float64))
    inverse = _inverse(base + RHO[:, None, None] * _walk(data.gaps))
    scores = design.T @ inverse
    covariance = _inverse(scores @ design)
    gain = covariance @ scores
    projection = inverse - scores.transpose(0, 2, 1) @ gain
    residual = projection @ data.values
    free = len(aside) - len(data.arms) - int(aside.sum()) - int(cuts.sum())
    squares = np.maximum((residual * data.values).sum(-1), 0)
    df, squares = pooled(max(free, 0), squares, data.prior)
    df = max(df, 1.0)
    fitness = np.linalg.slogdet(inverse)[1] + np.linalg.slogdet(covariance)[1]
    fitness = (fitness - df * np.log(np.maximum(squares, _TINY**2))) / 2
    weights = RHO_PRIOR * np.exp(fitness - fitness.max())
    return Fit(
        data.arms,
        data.index,
        weights / weights.sum(),
        squares / df + _TINY**2,
        df,
        gain @ data.values,
        gain,
        covariance,
        projection,
        residual,
        aside.copy(),
        cuts.copy(),
    )


def _inverse(matrices: Array) -> Array:
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def pooled(df: float, squares: Array, prior: Noise | None) -> tuple[float, Array]:
    """Degrees of freedom and sum of squares, with those of the prior."""
    if prior is None:
        return df, squares
    return df + prior.df, squares + prior.df * prior.sd**2


def _walk(variances: Array) -> Array:
    """Covariance of a random walk whose steps have these variances."""
    at = np.cumsum(variances)
    return np.minimum(at[:, None], at[None, :])


def _worst(found: Fit) -> tuple[str | None, int]:
    """The run or gap least like the rest, if unlikely (t of the deletion residual, Bonferroni)."""
    if found.df <= 1:
        return None, 0
    likeliest = int(np.argmax(found.weights))
    projection, residual = found.projection[likeliest], found.residual[likeliest]
    squares, n = found.variance[likeliest] * found.df, len(residual)
    tails = np.cumsum(residual[::-1])[::-1]
    blocks = np.cumsum(np.cumsum(projection[::-1, ::-1], 0), 1)[::-1, ::-1]
    runs = _deletion(residual, np.diag(projection), found.aside, squares, found.df)
    gaps = _deletion(tails, np.diag(blocks), found.cuts, squares, found.df)
    gaps[0] = 0
    both = np.concatenate([runs, gaps])
    place = int(np.argmax(both))
    if 2 * stdtr(found.df - 1, -both[place]) * 2 * n > STANDS_OUT:
        return None, 0
    return ("run", place) if place < n else ("gap", place - n)


def _deletion(
    score: Array, information: Array, skip: NDArray[np.bool_], squares: float, df: float
) -> Array:
    """|t| of an added dummy, with the variance that is left without it; 0 where none can be had."""
    usable = (information > 1e-4) & ~skip
    square = np.where(usable, score**2 / np.where(usable, information, 1), 0)
    rest = np.maximum(squares - square, _TINY**2) / (df - 1)
    return np.asarray(np.sqrt(square / rest))
