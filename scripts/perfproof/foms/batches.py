"""Samples of each step as realised, over all ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from perfproof.foms.log import Log
from perfproof.foms.step_table import Flags, Floats, Steps
from perfproof.schema.foms import StepTimeSource

# What models print themselves.
_OWN_SOURCES = (StepTimeSource.TIC4_TIC1, StepTimeSource.BATCH_SECONDS)


@dataclass(frozen=True)
class Batches:
    """Realised batches of a run's steps; columns have shape (steps,), NaN where not known."""

    mean: Floats  # samples a rank, over the ranks that reported
    lowest: Floats  # of these ranks
    mixed: dict[int, list[int]]  # sizes of all ranks, for steps where they differ

    @classmethod
    def of(cls, steps: Steps) -> Batches:
        """The batches that the steps report."""
        mean = np.where(steps.reports > 0, steps.size.astype(np.float64), np.nan)
        lowest = mean.copy()
        for at, sizes in steps.mixed.items():
            mean[at], lowest[at] = np.mean(sizes), min(sizes)
        return cls(mean, lowest, steps.mixed)

    def distinct(self, chosen: Flags) -> list[int]:
        """Distinct sizes among the chosen steps, sorted."""
        several = {size for at, sizes in self.mixed.items() if chosen[at] for size in sizes}
        equal = self.lowest[chosen & np.isfinite(self.lowest)]
        return sorted(several | {int(size) for size in np.unique(equal)})


def completed(steps: Steps, other: Steps) -> Steps:
    """Steps with what only the other account of the same steps says."""
    profiled = steps.profiled | other.profiled
    if steps.reports.any():
        return replace(steps, profiled=profiled)
    return replace(
        steps, profiled=profiled, size=other.size, reports=other.reports, mixed=other.mixed
    )


def step_source(log: Log) -> StepTimeSource | None:
    """The table that gives step times: records of every step, which hold the wait for the batch.

    Without them the model's own lines; those leave the loader out, so that a change of the loader
    shows in neither.
    """
    own = [source for source in _OWN_SOURCES if source in log.tables]
    complete = [source for source in own if _times_every_step(log.tables[source].steps())]
    records = log.tables.get(StepTimeSource.STEP_RECORD)
    if records is not None:
        steps = records.steps()
        most = max((len(log.tables[source].steps()) for source in complete), default=0)
        if not complete or (_times_every_step(steps) and len(steps) >= most):
            return StepTimeSource.STEP_RECORD
    return next(iter([*complete, *own]), None)


def _times_every_step(steps: Steps) -> bool:
    """True when no step is missing; the last one may lack its time (the run was cut off there)."""
    gaps = np.diff(steps.index)[np.diff(steps.epoch) == 0]
    return bool(len(steps) and np.isfinite(steps.time_s[:-1]).all() and (gaps == 1).all())
