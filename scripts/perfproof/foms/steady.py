"""Which steps count: the steady, unprofiled ones.

Rules, each for a stall that recorded runs show:

- The first epoch is dropped when a later one has steps left. Without one, the first 20 % of the
  epoch's steps are dropped, but at least three: the first step takes seconds (compilation, memory
  pool, autotuning), and a second stall of twice a step's time comes at index 1 to 3.
  A run that was started anew in the same log warms up anew, so each attempt loses the same.
- The first step of every epoch is dropped: loaders restart and a checkpoint may have been written.
- Profiled steps are dropped, and with them the profiler's warm-up steps (it already runs, the first
  of them starts it) and the step after the last one, in which the trace is written (0.3 to 10 s).

Nothing else is: outliers among the remaining steps are time that the training took.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perfproof.foms.step_table import Flags, Integers, Steps
from perfproof.schema.base import Reason

WARMUP_SHARE = 0.2
WARMUP_STEPS = 3
# Warm-up of HydraGNN's schedule, the longest known; taken where no manifest tells.
PROFILER_WARMUP_STEPS = 3


@dataclass(frozen=True)
class Profiled:
    """What is known of the profiler's window."""

    epochs: frozenset[int] = frozenset()
    trace_steps: frozenset[int] = frozenset()  # N of ProfilerStep#N
    by_epoch: bool = False  # N counts from the start of an epoch, not of the run
    warmup_steps: int = PROFILER_WARMUP_STEPS


def profiled_steps(steps: Steps, window: Profiled) -> Flags:
    """Steps that the profiler touched, shape (steps,).

    A profiled epoch is left out whole. Only where none is marked do the trace's step numbers tell;
    numbers that count within an epoch of unknown number are left out of every epoch.
    """
    marked: Flags = steps.profiled | np.isin(steps.epoch, list(window.epochs))
    if marked.any():
        # The step after a profiled epoch is the first of the next and is not timed anyway.
        return marked
    number = place_in_epoch(steps) if window.by_epoch else np.arange(len(steps))
    touched = marked.copy()
    for at in np.flatnonzero(np.isin(number, list(window.trace_steps))):
        touched[max(0, at - window.warmup_steps) : at + 2] = True
    return touched


def place_in_epoch(steps: Steps) -> Integers:
    """0 for the first step of each epoch, 1 for the next …, shape (steps,)."""
    starts = np.flatnonzero(steps.epoch_starts())
    lengths = np.diff(np.append(starts, len(steps)))
    return np.arange(len(steps)) - np.repeat(starts, lengths)


def steady_steps(steps: Steps, profiled: Flags) -> Flags:
    """Steps that count, shape (steps,)."""
    usable: Flags = np.isfinite(steps.time_s) & ~profiled & ~steps.epoch_starts()
    if not usable.any():
        return usable
    begins = steps.restarts()
    begins[0] = True
    visits = steps.visits()
    later: Flags = usable & ~np.isin(visits, visits[begins])
    if later.any():
        return later
    for at in np.flatnonzero(begins):
        length = int((visits == visits[at]).sum())
        usable[at : at + max(WARMUP_STEPS, math.ceil(WARMUP_SHARE * length))] = False
    return usable


def why_none(steps: Steps, profiled: Flags) -> Reason:
    """Why no step is steady."""
    if not np.isfinite(steps.time_s).any():
        return Reason.NO_STEP_TIMES_IN_LOG
    if steady_steps(steps, np.zeros(len(steps), dtype=bool)).any() and profiled.any():
        return Reason.ONLY_PROFILED
    return Reason.NO_STEADY_STEP
