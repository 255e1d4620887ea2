"""The loss curve of a run and what it says on its own."""

from __future__ import annotations

import math

import numpy as np

from perfproof.foms.known import record
from perfproof.foms.log import Log
from perfproof.foms.step_table import FINITE, NON_FINITE, Steps
from perfproof.schema.base import Reason
from perfproof.schema.foms import LossPoint, LossVerdict

# A smaller relative fall between first and last epoch is no sign of learning.
LEAST_FALL = 1e-3


def loss_curve(log: Log) -> list[LossPoint]:
    """Loss by epoch: the trainer's epoch lines, else the mean of the steps of rank 0.

    ORBIT-2's `epoch_loss` is the sum over steps, so it is not used: it changes with their number.
    """
    if log.epoch_losses:
        return [_point(epoch, loss) for epoch, loss in sorted(log.epoch_losses.items())]
    tables = [table.steps() for table in log.tables.values()]
    steps = next((table for table in tables if table.loss_state.any()), None)
    return [] if steps is None else _means(steps)


def _means(steps: Steps) -> list[LossPoint]:
    """Mean loss of each epoch; of an epoch that was begun anew, the last time counts."""
    group = steps.visits()
    numbers = steps.epoch[steps.epoch_starts()]
    bad, good = (np.bincount(group, steps.loss_state == state) for state in (NON_FINITE, FINITE))
    total = np.bincount(group, np.where(steps.loss_state == FINITE, steps.loss, 0.0))
    means = np.where(bad > 0, np.nan, total / np.maximum(good, 1))
    known = (bad > 0) | (good > 0)
    curve = dict(zip(numbers[known].tolist(), means[known].tolist(), strict=True))
    return [_point(epoch, loss) for epoch, loss in sorted(curve.items())]


def _point(epoch: int, loss: float) -> LossPoint:
    return record(LossPoint, epoch=epoch, loss=loss if math.isfinite(loss) else Reason.NON_FINITE)


def loss_verdict(curve: list[LossPoint], non_finite_count: int) -> LossVerdict:
    """One non-finite loss condemns a run; else the last epoch is held against the first."""
    if non_finite_count or any(point.loss is None for point in curve):
        return LossVerdict.NON_FINITE
    losses = [point.loss for point in curve if point.loss is not None]
    if not losses:
        return LossVerdict.UNKNOWN
    if len(losses) < 2:
        return LossVerdict.TOO_SHORT
    falls = losses[0] - losses[-1] > LEAST_FALL * abs(losses[0])
    return LossVerdict.DECREASING if falls else LossVerdict.NOT_DECREASING
