"""One side of a comparison: GPU work of some traces, normalised per step (or trace) and GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from perfproof.traces import groups
from perfproof.traces.context import Busy, Context
from perfproof.traces.grouping import Groups
from perfproof.traces.intervals import Ints, union, union_length_by
from perfproof.traces.names import normal_form
from perfproof.traces.ops import NO_LAUNCH
from perfproof.traces.phase import PHASES, phases
from perfproof.traces.timeline import exposed_comm, exposed_memcpy

Basis = Literal["per step", "per trace"]
Key = tuple[str, ...]
# What each level of the comparison is keyed by.
LEVELS: dict[str, Key] = {
    "categories": ("group", "phase"),
    "operators": ("operator",),
    "kernels": ("kernel", "group"),
    "gemm": ("kernel", "phase"),
}


class Work(NamedTuple):
    """GPU events of one key: how many, and the time they cover."""

    events: float
    covered_ns: float


@dataclass(frozen=True)
class Measured:
    """What one trace, or the mean over the GPUs of a side, did per step (or per trace)."""

    steps: list[int]
    time_ns: float
    totals: dict[str, float]  # ns, but for counts
    levels: dict[str, dict[Key, Work]]


class _Chosen(NamedTuple):
    """Events that count, the steps they belong to, and the time that holds them."""

    events: Ints
    steps: list[int]
    time_ns: int


def has_steps(context: Context) -> bool:
    """Whether steps launched GPU work: only then can it be counted per step."""
    return bool((context.steps.of(context.launched) >= 0).any())


def measure(context: Context, basis: Basis) -> Measured:
    """The GPU work of one trace, divided by its number of steps where the basis is `per step`.

    Per step: the events launched inside steps; steps that launched nothing are left out, with
    their time. Per trace: all events, over their span.
    """
    chosen = _by_step(context) if basis == "per step" else _whole(context)
    divisor = len(chosen.steps) if basis == "per step" else 1
    return Measured(
        steps=chosen.steps,
        time_ns=chosen.time_ns / divisor,
        totals={name: value / divisor for name, value in _totals(context, chosen).items()},
        levels={
            level: {
                key: Work(work.events / divisor, work.covered_ns / divisor)
                for key, work in _level(context, chosen.events, level).items()
            }
            for level in LEVELS
        },
    )


def mean(traces: Sequence[Measured]) -> Measured:
    """The mean over the GPUs of a side; what one of them lacks counts there as nothing."""
    size = len(traces)
    levels: dict[str, dict[Key, Work]] = {level: {} for level in LEVELS}
    for trace in traces:
        for level, works in trace.levels.items():
            for key, work in works.items():
                before = levels[level].get(key, Work(0, 0))
                levels[level][key] = Work(
                    before.events + work.events / size, before.covered_ns + work.covered_ns / size
                )
    return Measured(
        steps=sorted({step for trace in traces for step in trace.steps}),
        time_ns=sum(trace.time_ns for trace in traces) / size,
        totals={
            name: sum(trace.totals[name] for trace in traces) / size for name in traces[0].totals
        },
        levels=levels,
    )


def _by_step(context: Context) -> _Chosen:
    """A step lasts until its annotation and its GPU work have ended; overlaps count once."""
    steps, gpu = context.steps, context.gpu
    owner = steps.of(context.launched)
    events = np.flatnonzero(owner >= 0)
    used = np.unique(owner[events])
    end = steps.end.copy()
    np.maximum.at(end, owner[events], gpu.end[events])
    time = union(steps.start[used], end[used]).length()
    return _Chosen(events, [steps.number[at] for at in used.tolist()], time)


def _whole(context: Context) -> _Chosen:
    every = context.all_busy.every
    time = int(every.end[-1] - every.start[0]) if every.start.size else 0
    return _Chosen(np.arange(len(context.gpu)), [], time)


def _totals(context: Context, chosen: _Chosen) -> dict[str, float]:
    counted = np.zeros(len(context.gpu), np.bool_)
    counted[chosen.events] = True
    busy: Busy = context.busy(counted)
    return {
        "time": chosen.time_ns,
        "busy": busy.every.length(),
        "idle": chosen.time_ns - busy.every.length(),
        "compute": busy.compute.length(),
        "communication": busy.comm.length(),
        "exposed communication": exposed_comm(busy),
        "memcpy": busy.memcpy.length(),
        "exposed memcpy": exposed_memcpy(busy),
        "GPU events": chosen.events.size,
    }


def _level(context: Context, events: Ints, level: str) -> dict[Key, Work]:
    """Work by the keys of one level."""
    if level == "gemm":
        events = events[context.group[events] == groups.INDEX["gemm"]]
    parts = [_PARTS[part](context, events) for part in LEVELS[level]]
    keyed = Groups(*(number for number, _ in parts))
    covered = union_length_by(
        keyed.of_row, context.gpu.start[events], context.gpu.end[events], len(keyed)
    )
    texts = [
        [names[at] for at in key.tolist()]
        for key, (_, names) in zip(keyed.keys, parts, strict=True)
    ]
    return {
        key: Work(count, time)
        for *_, key, count, time in zip(
            zip(*texts, strict=True), keyed.count.tolist(), covered.tolist(), strict=True
        )
    }


_Part = tuple[Ints, Sequence[str]]  # a number for each event, and what the numbers mean


def _group(context: Context, events: Ints) -> _Part:
    return context.group[events], groups.NAMES


def _phase(context: Context, events: Ints) -> _Part:
    return phases(context)[events], PHASES


def _kernel(context: Context, events: Ints) -> _Part:
    return _numbered([normal_form(context.name(at)) for at in context.gpu.name[events].tolist()])


def _operator(context: Context, events: Ints) -> _Part:
    """The operation that launched each event, else the call, else nothing."""
    op, call = context.links.op[events], context.links.call[events]
    name = np.where(op >= 0, context.op_name(op), context.call_name(call))
    name = np.where((op >= 0) | (call >= 0), name, -1)
    return _numbered([NO_LAUNCH if at < 0 else context.name(at) for at in name.tolist()])


def _numbered(texts: list[str]) -> _Part:
    names = sorted(set(texts))
    place = {name: at for at, name in enumerate(names)}
    return np.array([place[text] for text in texts], np.int64), names


_PARTS: dict[str, Callable[[Context, Ints], _Part]] = {
    "group": _group,
    "phase": _phase,
    "kernel": _kernel,
    "operator": _operator,
}
