"""Noise of runs for the simulator of decisions: one generator a scenario, ln(figure) per run.

Sizes follow recorded runs: 17.8 % between identical runs of a dispatch-bound workload, 1.5 % of a
compute-bound one, a baseline of 92.5 s that became 76 s on another day, outliers of 10 to 60 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rng = np.random.Generator

OUTLIER_SHARE = 0.05
DAY_JUMP = math.log(92.5 / 76)
# Chance that the next run falls on another day.
DAY_CHANCE = 1 / 20


@dataclass(frozen=True)
class Scenario:
    """Noise of `sd` (1 %: 0.01) with what comes on top of it."""

    name: str
    sd: float
    draw: Callable[[Rng, int, float], Array]

    def runs(self, rng: Rng, count: int) -> Array:
        """Noise of `count` runs in order; a slower run is a smaller value."""
        return self.draw(rng, count, self.sd)


def gaussian(rng: Rng, count: int, sd: float) -> Array:
    """Independent Gaussian runs."""
    return rng.normal(0, sd, count)


def outliers(rng: Rng, count: int, sd: float) -> Array:
    """Gaussian; 5 % of the runs take 10 to 60 % longer."""
    slow = np.where(rng.random(count) < OUTLIER_SHARE, rng.uniform(0.1, 0.6, count), 0)
    return gaussian(rng, count, sd) - np.log1p(slow)


def heavy_tails(rng: Rng, count: int, sd: float) -> Array:
    """Student's t with three degrees of freedom, scaled to the standard deviation."""
    return np.asarray(rng.standard_t(3, count) * sd / math.sqrt(3))


def random_walk(rng: Rng, count: int, sd: float) -> Array:
    """Gaussian plus a walk of half a standard deviation from run to run."""
    return gaussian(rng, count, sd) + np.cumsum(rng.normal(0, sd / 2, count))


def strong_walk(rng: Rng, count: int, sd: float) -> Array:
    """Gaussian plus a walk of a whole standard deviation from run to run."""
    return gaussian(rng, count, sd) + np.cumsum(rng.normal(0, sd, count))


def autoregressive(rng: Rng, count: int, sd: float) -> Array:
    """AR(1) with coefficient 0.7: a neighbouring run is alike."""
    noise, values = gaussian(rng, count, sd * math.sqrt(1 - 0.7**2)), np.empty(count)
    values[0] = rng.normal(0, sd)
    for place in range(1, count):
        values[place] = 0.7 * values[place - 1] + noise[place]
    return values


def day_jumps(rng: Rng, count: int, sd: float) -> Array:
    """Gaussian; every 20 runs or so all figures move by about 20 %, either way."""
    moved = rng.random(count) < DAY_CHANCE
    return gaussian(rng, count, sd) + np.cumsum(moved * rng.normal(0, DAY_JUMP, count))


def two_states(rng: Rng, count: int, sd: float) -> Array:
    """Gaussian; the machine goes back and forth between two speeds 20 % apart."""
    moved = rng.random(count) < 2 * DAY_CHANCE
    return gaussian(rng, count, sd) + DAY_JUMP * (np.cumsum(moved) % 2)


def two_modes(rng: Rng, count: int, sd: float) -> Array:
    """Gaussian; four runs of ten are three standard deviations slower (seen in ORBIT-2)."""
    return gaussian(rng, count, sd) - 3 * sd * (rng.random(count) < 0.4)


def everything(rng: Rng, count: int, sd: float) -> Array:
    """Heavy tails, outliers, a walk and day jumps at once."""
    walk = np.cumsum(rng.normal(0, sd / 4, count))
    return heavy_tails(rng, count, sd) + outliers(rng, count, 0) + day_jumps(rng, count, 0) + walk


SCENARIOS = [
    *(Scenario(f"gaussian {sd:.1%}", sd, gaussian) for sd in (0.005, 0.01, 0.015, 0.05, 0.18)),
    *(Scenario(f"outliers {sd:.0%}", sd, outliers) for sd in (0.01, 0.18)),
    *(Scenario(f"heavy tails {sd:.0%}", sd, heavy_tails) for sd in (0.01, 0.18)),
    Scenario("random walk 1%", 0.01, random_walk),
    Scenario("strong walk 1%", 0.01, strong_walk),
    Scenario("AR(1) 0.7 1%", 0.01, autoregressive),
    Scenario("day jumps 1%", 0.01, day_jumps),
    Scenario("two states 1%", 0.01, two_states),
    Scenario("two modes 1%", 0.01, two_modes),
    Scenario("everything 1%", 0.01, everything),
]
