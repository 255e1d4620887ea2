"""Findings about a trace: what is missing, damaged or distorting, each with its number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfproof.schema.traces import Finding
from perfproof.traces.calls import graph_launches
from perfproof.traces.context import Context
from perfproof.traces.durations import (
    endless_event,
    impossible_duration,
    same_stream_overlap,
    zero_severity,
)
from perfproof.traces.finding import Severity, finding, grade
from perfproof.traces.intervals import Ints
from perfproof.traces.strays import stray

_FEW = 0.05  # a share that changes no conclusion
_MANY = 0.5


def findings(context: Context) -> list[Finding]:
    """All findings about one rank's trace, in a fixed order."""
    checks = (
        _repairs,
        _device,
        _links,
        _meta,
        _annotations,
        _steps,
        _times,
        same_stream_overlap,
        impossible_duration,
        endless_event,
        stray,
        _graphs,
    )
    return [found for check in checks for found in check(context)]


def _repairs(context: Context) -> Iterator[Finding]:
    repairs = context.trace.repairs
    if repairs.count():
        severity: Severity = "bad" if repairs.lost() else "warn"
        yield finding("repaired", severity, repairs.count(), repairs.describe())


def _device(context: Context) -> Iterator[Finding]:
    if not len(context.gpu):
        yield finding(
            "no_device_timeline", "warn", 0, "no GPU event: only tables about the CPU are filled"
        )


def _links(context: Context) -> Iterator[Finding]:
    if not len(context.gpu):
        return
    unlinked = int((~context.links.linked).sum())
    share = unlinked / len(context.gpu)
    severity = grade(share, _FEW, _MANY)
    text = f"{unlinked} of {len(context.gpu)} GPU events have no recorded launch"
    yield finding("unlinked_gpu_events", severity, share, f"{text} (value: share)")


def _meta(context: Context) -> Iterator[Finding]:
    for text in context.trace.meta.impossible:
        yield finding("impossible_metadata", "warn", 0, text)


def _annotations(context: Context) -> Iterator[Finding]:
    """Step annotations that do not follow one another; `Steps` says what becomes of them."""
    steps, numbers = context.steps, context.steps.number
    again = len(numbers) - len(set(numbers)) + steps.copies
    for code, count, text in (
        ("nested_steps", steps.nested, "lie inside another one and are ignored"),
        ("duplicate_steps", again, "repeat the number of another one"),
        ("overlapping_steps", steps.overlapping, "begin before the one before has ended"),
        ("unreadable_steps", steps.unreadable, "have a number too long to be one, and are ignored"),
    ):
        severity: Severity = "bad" if code == "unreadable_steps" else "warn"
        if count:
            yield finding(code, severity, count, f"{count} ProfilerStep annotations {text}")


def _steps(context: Context) -> Iterator[Finding]:
    numbers = context.steps.number
    if not numbers:
        yield finding("no_steps", "warn", 0, "no ProfilerStep annotation on the CPU side")
        return
    absent = max(numbers) - min(numbers) + 1 - len(set(numbers))
    if absent:
        text = f"steps {min(numbers)} to {max(numbers)} are not all there"
        yield finding("steps_missing", "warn", absent, text)
    if not len(context.gpu):
        return
    owned = context.steps.of(context.launched)
    empty = len(numbers) - len(np.unique(owned[owned >= 0]))
    if empty:
        severity: Severity = "bad" if empty * 2 >= len(numbers) else "warn"
        text = f"{empty} of {len(numbers)} steps launched no GPU event"
        yield finding("steps_without_gpu_events", severity, empty, text)


def _times(context: Context) -> Iterator[Finding]:
    faults, total = context.trace.gpu_faults, max(context.trace.gpu_recorded, 1)
    for code, count, text in (
        ("zero_duration", faults.zero_duration, "last 0 ns"),
        ("negative_duration", faults.negative_duration, "last less than 0 ns, counted as 0"),
        ("no_duration", faults.no_duration, "have no finite or an absurd duration, counted as 0"),
        ("no_timestamp", faults.no_timestamp, "have no finite time and are left out"),
        ("zero_timestamp", faults.zero_timestamp, "start at or before time 0"),
    ):
        if count:
            severity = grade(count / total, 0.0, _FEW)
            if code == "zero_duration":
                severity = zero_severity(context)
            elif code == "zero_timestamp":
                severity = "info"
            yield finding(code, severity, count, f"{count} of {total} GPU events {text}")


def _graphs(context: Context) -> Iterator[Finding]:
    """Graph launches with far fewer GPU events than others: replays recorded in part."""
    poor = poor_graph_launches(context)
    if poor:
        each = _events_of_graphs(context)
        text = (
            f"{poor} of {each.size} graph launches have under half the GPU events of the "
            f"largest ({int(each.max())}): replays may be recorded in part"
        )
        yield finding("graph_replays_under_recorded", "warn", poor, text)


def poor_graph_launches(context: Context) -> int:
    """Graph launches with under half the GPU events of the largest."""
    each = _events_of_graphs(context)
    return int((each * 2 < each.max(initial=1)).sum())


def _events_of_graphs(context: Context) -> Ints:
    """GPU events of each graph launch; none in a trace without GPU events."""
    launches = graph_launches(context)
    if not launches.size or not len(context.gpu):
        return np.empty(0, np.int64)
    linked = context.links.call[context.links.linked]
    each: Ints = np.bincount(linked, minlength=len(context.trace.calls))[launches]
    return each
