"""Typed events to columns: kinds told apart, times exact, names interned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perfproof.traces.args import Args, decode_args, external_id, to_collective, to_ints
from perfproof.traces.clock import LONGEST, to_ns
from perfproof.traces.decode import Decoded, Document, Event, decode_file
from perfproof.traces.intervals import Ints, Mask
from perfproof.traces.meta import read_meta
from perfproof.traces.model import (
    KERNEL,
    MEMCPY,
    MEMSET,
    Calls,
    Faults,
    GpuEvents,
    Ops,
    Spans,
    Trace,
)

# Categories of kineto since 2022 and, capitalised, of 2021.
_GPU = {
    "kernel": KERNEL,
    "Kernel": KERNEL,
    "gpu_memcpy": MEMCPY,
    "Memcpy": MEMCPY,
    "gpu_memset": MEMSET,
    "Memset": MEMSET,
}
_CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
_OPS = ("cpu_op", "Operator")
_MARKS = ("user_annotation",)
_ARROW = "ac2g"
# Annotations that old files store among the operations.
_MARK_NAMES = ("ProfilerStep#", "enumerate(DataLoader)#")


class _Names:
    """Strings to consecutive numbers, in order of first use."""

    def __init__(self) -> None:
        self.ids: defaultdict[str, int] = defaultdict(count().__next__)

    def of(self, values: Iterable[str]) -> Ints:
        return np.array([self.ids[value] for value in values], dtype=np.int64)


def read_trace(path: Path, label: str) -> Trace:
    """Read one trace file; `label` is its name in messages and records.

    Raises `InputError` when the file is no trace.
    """
    return build(decode_file(path), label)


def build(decoded: Decoded, label: str) -> Trace:
    """Columns of a decoded trace."""
    document = decoded.document
    kinds = events_by_kind(document)
    names, threads = _Names(), _Names()
    faults = Faults()
    return Trace(
        file=label,
        events=len(document.traceEvents),
        gpu=_gpu(kinds.gpu, names, threads, faults),
        calls=_calls(kinds.calls, names, threads),
        ops=_ops(kinds.ops, names, threads),
        marks=_table(kinds.marks, names, threads, Faults()).spans,
        processes=_processes(kinds.calls, kinds.ops, kinds.marks),
        gpu_processes=_processes(kinds.gpu),
        meta=read_meta(document),
        gpu_recorded=len(kinds.gpu),
        gpu_faults=faults,
        repairs=decoded.repairs,
        arrows=_arrows(kinds.arrows),
        names=list(names.ids),
        threads=list(threads.ids),
    )


class Kinds(NamedTuple):
    """Events of the file by kind, in file order."""

    gpu: list[Event]
    calls: list[Event]
    ops: list[Event]
    marks: list[Event]
    arrows: list[Event]  # they have no column


def events_by_kind(document: Document) -> Kinds:
    """The events that analysis uses; columns hold those of each kind that have a time, by start."""
    kinds = _by_category(document.traceEvents)
    ops, marks = _split_marks([e for c in _OPS for e in kinds[c]])
    return Kinds(
        gpu=[event for category in _GPU for event in kinds[category]],
        calls=[event for category in _CALLS for event in kinds[category]],
        ops=ops,
        marks=marks + [event for category in _MARKS for event in kinds[category]],
        arrows=kinds[_ARROW],
    )


def _arrows(arrows: list[Event]) -> frozenset[int]:
    """Correlations of the arrows from a call to the GPU whose two ends are recorded."""
    begun = {bytes(event.id) for event in arrows if event.ph == "s"}
    ended = {bytes(event.id) for event in arrows if event.ph == "f"}
    return frozenset(int(text) for text in begun & ended if text.isdigit())


def _processes(*sides: list[Event]) -> tuple[str, ...]:
    return tuple(sorted(map(str, {event.pid for side in sides for event in side})))


def file_places(document: Document) -> dict[str, Ints]:
    """For each kind and row of its columns, the event's place in the file."""
    place = {id(event): at for at, event in enumerate(document.traceEvents)}
    kinds = events_by_kind(document)._asdict()
    del kinds["arrows"]
    found = {}
    for kind, events in kinds.items():
        start, timed = to_ns([event.ts for event in events])
        order = _by_start(start, timed).tolist()
        found[kind] = np.array([place[id(events[at])] for at in order], np.int64)
    return found


def _by_start(start: Ints, timed: Mask) -> Ints:
    kept = np.flatnonzero(timed)
    order: Ints = kept[np.argsort(start[kept], kind="stable")]
    return order


def _by_category(events: list[Event]) -> defaultdict[str, list[Event]]:
    wanted = {*_GPU, *_CALLS, *_OPS, *_MARKS, _ARROW}
    kinds: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.cat in wanted and (event.ph == "X" or event.cat == _ARROW):
            kinds[event.cat].append(event)
    return kinds


def _split_marks(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """Operations, and the annotations that old files keep among them."""
    ops: list[Event] = []
    marks: list[Event] = []
    for event in events:
        marked = event.name is not None and event.name.startswith(_MARK_NAMES)
        (marks if marked else ops).append(event)
    return ops, marks


class _Table:
    """Events of one kind with the order that sorts them and the fields all kinds share."""

    def __init__(self, events: list[Event], spans: Spans, order: Ints) -> None:
        self.events = [events[index] for index in order.tolist()]
        self.spans = spans

    @cached_property
    def args(self) -> list[Args]:
        """Decoded arguments, by event."""
        return [decode_args(event.args) for event in self.events]

    def ints(self, value: Callable[[Args], Any], missing: int) -> Ints:
        return to_ints([value(args) for args in self.args], missing)


def _table(events: list[Event], names: _Names, threads: _Names, faults: Faults) -> _Table:
    start, timed = to_ns([event.ts for event in events])
    duration, known = to_ns([event.dur for event in events])
    known &= duration < LONGEST
    _count_faults(start, timed, duration, known, faults)
    duration = np.where(known & (duration > 0), duration, 0)
    order = _by_start(start, timed)
    name = names.of(event.name or "" for event in events)[order]
    thread = threads.of(f"{event.pid}/{event.tid}" for event in events)[order]
    spans = Spans(start[order], (start + duration)[order], name, thread)
    return _Table(events, spans, order)


def _count_faults(start: Ints, timed: Mask, duration: Ints, known: Mask, faults: Faults) -> None:
    faults.no_timestamp = int((~timed).sum())
    faults.zero_timestamp = int((timed & (start <= 0)).sum())
    faults.no_duration = int((~known).sum())
    faults.zero_duration = int((known & (duration == 0)).sum())
    faults.negative_duration = int((known & (duration < 0)).sum())


def _gpu(events: list[Event], names: _Names, threads: _Names, faults: Faults) -> GpuEvents:
    table = _table(events, names, threads, faults)
    return GpuEvents(
        **vars(table.spans),
        kind=np.array([_GPU[event.cat] for event in table.events], dtype=np.int8),
        stream=table.ints(lambda args: args.stream, -1),
        device=table.ints(lambda args: args.device, -1),
        correlation=table.ints(lambda args: args.correlation, 0),
        external=table.ints(external_id, 0),
        bytes=table.ints(lambda args: args.bytes, -1),
        collective={
            index: found
            for index, args in enumerate(table.args)
            if args.collective is not None
            and (found := to_collective(table.events[index].args)) is not None
        },
    )


def _calls(events: list[Event], names: _Names, threads: _Names) -> Calls:
    table = _table(events, names, threads, Faults())
    return Calls(**vars(table.spans), correlation=table.ints(lambda args: args.correlation, 0))


def _ops(events: list[Event], names: _Names, threads: _Names) -> Ops:
    table = _table(events, names, threads, Faults())
    return Ops(
        **vars(table.spans),
        external=table.ints(external_id, 0),
        args=[event.args for event in table.events],
    )
