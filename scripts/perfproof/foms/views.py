"""The steps and epochs of a run, with the flags that say which of them count."""

from __future__ import annotations

from dataclasses import dataclass

from perfproof.foms.batches import Batches, completed, step_source
from perfproof.foms.epochs import EpochRecord, epoch_records, later_epochs
from perfproof.foms.layout import Layout
from perfproof.foms.log import Log
from perfproof.foms.logs import RunLog
from perfproof.foms.sources import Sources
from perfproof.foms.steady import (
    PROFILER_WARMUP_STEPS,
    Profiled,
    profiled_steps,
    steady_steps,
    why_none,
)
from perfproof.foms.step_table import Flags, Steps
from perfproof.schema.base import Reason
from perfproof.schema.foms import StepTimeSource
from perfproof.schema.traces import TraceSummary


@dataclass(frozen=True)
class StepView:
    """Steps of the source that gives their times; flags have shape (steps,)."""

    source: StepTimeSource
    steps: Steps
    batches: Batches
    profiled: Flags
    steady: Flags


@dataclass(frozen=True)
class EpochView:
    """Epochs by progress bar, and those that count: no first one of an attempt, no profiled one."""

    epochs: list[EpochRecord]
    steady: list[EpochRecord]
    profiled: list[EpochRecord]


@dataclass(frozen=True)
class Run:
    """What figures are computed from. `log` is None when the run left none."""

    log: Log | None
    layout: Layout
    steps: StepView | None
    epochs: EpochView
    no_log: Reason = Reason.NO_LOG

    def why_no_step(self) -> Reason:
        """Why no step is steady."""
        if self.log is None:
            return self.no_log
        if self.steps is None:
            seen = self.log.has_training()
            return Reason.NO_STEP_TIMES_IN_LOG if seen else Reason.NO_STEP_LINES
        return why_none(self.steps.steps, self.steps.profiled)

    def why_no_epoch(self) -> Reason:
        """Why no epoch is steady."""
        if self.log is None:
            return self.no_log
        if not self.epochs.epochs:
            return Reason.NO_EPOCH_LINES
        later = {epoch.epoch for epoch in later_epochs(self.epochs.epochs)}
        only = later and later <= {epoch.epoch for epoch in self.epochs.profiled}
        return Reason.ONLY_PROFILED if only else Reason.NO_STEADY_STEP


def run_of(logs: RunLog, layout: Layout, sources: Sources, traces: TraceSummary | None) -> Run:
    """Decide which steps and epochs of a run count."""
    log = logs.log
    if log is None:
        return Run(None, layout, None, EpochView([], [], []), logs.missing)
    window = _window(log, sources, traces)
    return Run(log, layout, _steps(log, window), _epochs(log, layout, sources, window))


def _steps(log: Log, window: Profiled) -> StepView | None:
    source = step_source(log)
    if source is None:
        return None
    steps = log.tables[source].steps()
    for other, table in sorted(log.tables.items()):
        same = table.steps() if other is not source else None
        if same is not None and len(same) == len(steps):
            steps = completed(steps, same)
    profiled = profiled_steps(steps, window)
    return StepView(source, steps, Batches.of(steps), profiled, steady_steps(steps, profiled))


def _epochs(log: Log, layout: Layout, sources: Sources, window: Profiled) -> EpochView:
    ranks = None if isinstance(layout.ranks, Reason) else layout.ranks
    epochs = epoch_records(log.bars, ranks, sources.epochs)
    steady = [epoch for epoch in later_epochs(epochs) if epoch.epoch not in window.epochs]
    return EpochView(epochs, steady, [e for e in epochs if e.epoch in window.epochs])


def _window(log: Log, sources: Sources, traces: TraceSummary | None) -> Profiled:
    """What the profiler touched: printed, reported by rank 0, configured, or in the traces."""
    manifest = sources.manifest
    rank0 = manifest.rank0 if manifest else None
    stated = set(rank0.profiled_epochs) if rank0 else set()
    if sources.profiled_epoch is not None:
        stated.add(sources.profiled_epoch)
    traced = {step for rank in traces.ranks for step in rank.steps} if traces else set()
    return Profiled(
        epochs=frozenset(log.profiled_epochs | stated),
        trace_steps=frozenset(traced),
        by_epoch="hydragnn" in log.formats,
        warmup_steps=manifest.resolved.recipe.profile.warmup if manifest else PROFILER_WARMUP_STEPS,
    )
