"""Figures of merit of one run: the only place that computes them.

Functions give a value or raise `UnknownValueError` with the reason; callers wrap them in `known`.
"""

from __future__ import annotations

import math

import numpy as np

from perfproof.foms.known import UnknownValueError, need, record
from perfproof.foms.step_table import Floats
from perfproof.foms.views import Run, StepView
from perfproof.schema.base import Reason
from perfproof.schema.foms import Distribution, Method, StepTimeSource


def throughput(run: Run) -> tuple[float, Method]:
    """Samples a second, all ranks: by steps where steady steps are timed, else by epochs."""
    if run.steps is not None and run.steps.steady.any():
        return _step_rate(run, run.steps)
    if run.epochs.epochs:
        return _epoch_rate(run)
    raise UnknownValueError(run.why_no_step())


def _step_rate(run: Run, view: StepView) -> tuple[float, Method]:
    """Sum of samples over ranks and steady steps / sum of the times of these steps."""
    data_ranks = need(run.layout.data_ranks)
    seconds = float(view.steps.time_s[view.steady].sum())
    batch = view.batches.mean[view.steady]
    if np.isfinite(batch).all():
        return float(batch.sum()) * data_ranks / seconds, Method.REALISED_BATCH
    samples = need(run.layout.batch_size) * len(batch)
    return samples * data_ranks / seconds, Method.NOMINAL_BATCH


def _epoch_rate(run: Run) -> tuple[float, Method]:
    """Nominal batch x batches x ranks / time, over steady epochs."""
    if not run.epochs.steady:
        raise UnknownValueError(run.why_no_epoch())
    step_samples = need(run.layout.batch_size) * need(run.layout.data_ranks)
    batches = sum(epoch.batches for epoch in run.epochs.steady)
    seconds = math.fsum(epoch.seconds for epoch in run.epochs.steady)
    return step_samples * batches / seconds, Method.EPOCH_RATE


def steady_times(run: Run) -> Floats:
    """Times of the steady steps, seconds, shape (steady steps,)."""
    view = run.steps
    return np.empty(0) if view is None else view.steps.time_s[view.steady]


def distribution(times: Floats) -> Distribution:
    """Spread of `times`; not empty."""
    spread = float(times.std(ddof=1) / np.sqrt(len(times))) if len(times) > 1 else None
    return record(
        Distribution,
        n=len(times),
        mean=float(times.mean()),
        median=float(np.median(times)),
        p5=float(np.percentile(times, 5)),
        p95=float(np.percentile(times, 95)),
        standard_error=Reason.TOO_FEW_VALUES if spread is None else spread,
    )


def batches_per_epoch(run: Run) -> int:
    """Steps of a whole epoch: the bar's total, else the most steps that an epoch has."""
    if run.epochs.epochs:
        return max(epoch.batches for epoch in run.epochs.epochs)
    if run.steps is None:
        raise UnknownValueError(run.why_no_step())
    if run.steps.source is StepTimeSource.BATCH_SECONDS:
        raise UnknownValueError(Reason.NOT_PRINTED)
    return int(np.bincount(run.steps.steps.visits()).max())


def samples_per_epoch(run: Run) -> int:
    """Samples of a whole epoch, all ranks: realised where the log says, else nominal."""
    batches, data_ranks = batches_per_epoch(run), need(run.layout.data_ranks)
    if run.steps is None or not np.isfinite(run.steps.batches.mean).all():
        return batches * need(run.layout.batch_size) * data_ranks
    group = run.steps.steps.visits()
    counts = np.bincount(group)
    sums = set(np.bincount(group, run.steps.batches.mean)[counts == batches].tolist())
    if len(sums) != 1:
        raise UnknownValueError(Reason.DISAGREES if sums else Reason.RUN_INCOMPLETE)
    return round(float(sums.pop()) * data_ranks)


def epoch_time(run: Run) -> float:
    """Mean time of the steady epochs; refused where their number of samples is not known."""
    if not run.epochs.epochs and run.steps is not None:
        raise UnknownValueError(Reason.NOT_PRINTED)
    if not run.epochs.steady:
        raise UnknownValueError(run.why_no_epoch())
    samples_per_epoch(run)
    return float(np.mean([epoch.seconds for epoch in run.epochs.steady]))


def partial_step_fraction(run: Run) -> float:
    """Share of steady steps in which some rank had fewer samples than the nominal batch."""
    view = _with_sizes(run)
    return float((view.batches.lowest[view.steady] < need(run.layout.batch_size)).mean())


def realised_sizes(run: Run) -> list[int]:
    """Distinct batch sizes of the steady steps, sorted."""
    view = _with_sizes(run)
    return view.batches.distinct(view.steady)


def _with_sizes(run: Run) -> StepView:
    """The steps, if every steady one has a realised batch."""
    view = run.steps
    if view is None or not view.steady.any():
        raise UnknownValueError(run.why_no_step())
    if not np.isfinite(view.batches.mean[view.steady]).all():
        raise UnknownValueError(Reason.NOT_PRINTED)
    return view


def excluded_as_profiled(run: Run) -> int:
    """Steps that were left out because the profiler touched them; batches where only bars are."""
    if run.steps is not None:
        return int(run.steps.profiled.sum())
    return sum(epoch.batches for epoch in run.epochs.profiled)
