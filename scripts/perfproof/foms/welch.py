"""Ratio of two sets of runs with its interval. Runs are the unit, never steps.

With x and y the logarithms of n and m values, d = mean(y) - mean(x) is the logarithm of the ratio
of geometric means and exp(d ± t·s) its interval, where s² = var(x)/n + var(y)/m and t has Welch's
degrees of freedom. A side of one value has no variance of its own; it is then taken to have that of
the other side, so s² = var·(1/n + 1) with n - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from perfproof.foms.step_table import Floats


def ratio_of(a: Sequence[float], b: Sequence[float]) -> float:
    """Geometric mean of `b` over that of `a`; all values are positive."""
    return math.exp(float(np.log(b).mean() - np.log(a).mean()))


def interval_of(
    a: Sequence[float], b: Sequence[float], confidence: float
) -> tuple[float, float] | None:
    """Interval of `ratio_of`, or None where neither side was repeated."""
    x, y = np.log(a), np.log(b)
    if len(x) == 1 and len(y) == 1:
        return None
    error, freedom = _standard_error(x, y)
    margin = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
    distance = float(y.mean() - x.mean())
    return math.exp(distance - margin), math.exp(distance + margin)


def _standard_error(x: Floats, y: Floats) -> tuple[float, float]:
    """Standard error of mean(y) - mean(x) and its degrees of freedom."""
    if len(x) == 1 or len(y) == 1:
        many = x if len(x) > 1 else y
        return math.sqrt(float(many.var(ddof=1)) * (1 / len(many) + 1)), len(many) - 1
    parts = [float(side.var(ddof=1)) / len(side) for side in (x, y)]
    total = math.fsum(parts)
    if total == 0:
        return 0.0, 1.0
    down = parts[0] ** 2 / (len(x) - 1) + parts[1] ** 2 / (len(y) - 1)
    return math.sqrt(total), total**2 / down
