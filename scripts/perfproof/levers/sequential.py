"""Group-sequential bounds: how small a p-value must be at each look for a fixed total error.

The error is spent as alpha t^2.75 over information fractions t (Kim & DeMets 1987); bounds follow
from the recursive integration of Armitage, McPherson & Rowe (1969) for independent increments.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

SPENDING_POWER = 2.75
_STEP = 0.02
_LOWEST = -9.0


@functools.lru_cache(maxsize=256)
def p_bounds(alpha: float, fractions: tuple[float, ...]) -> tuple[float, ...]:
    """Nominal one-sided p-value bound at each look; accepting at any has chance `alpha`."""
    bounds: list[float] = []
    spent, at, density, before = 0.0, np.zeros(1), np.ones(1), 0.0
    for fraction in fractions:
        spread = math.sqrt(fraction - before)
        due = alpha * fraction**SPENDING_POWER - spent
        score = _score_with_tail(due, at, density, spread)
        bounds.append(float(ndtr(-score / math.sqrt(fraction))))
        at, density = _continued(score, at, density, spread, fraction)
        spent, before = spent + due, fraction
    return tuple(bounds)


def _score_with_tail(due: float, at: Array, density: Array, spread: float) -> float:
    """The score S = z sqrt(t) above which the paths that still go on have chance `due`."""
    low, high = 0.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = float(density @ ndtr((at - middle) / spread))
        low, high = (middle, high) if tail > due else (low, middle)
    return high


def _continued(
    score: float, at: Array, density: Array, spread: float, fraction: float
) -> tuple[Array, Array]:
    """Where the paths below the bound are, as masses on a grid."""
    grid = np.arange(_LOWEST * math.sqrt(fraction), score, _STEP * math.sqrt(fraction))
    edges = np.append(grid, score)
    below = ndtr((edges[:, None] - at) / spread) @ density
    return (edges[:-1] + edges[1:]) / 2, np.diff(below)
