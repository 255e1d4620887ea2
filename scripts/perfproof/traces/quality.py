"""Findings about a trace: what is missing, damaged or distorting, each with its number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from perfproof.schema.traces import Finding
from perfproof.traces.calls import graph_launches
from perfproof.traces.context import Context
from perfproof.traces.grouping import Groups
from perfproof.traces.intervals import Intervals, Ints, union_length_by
from perfproof.traces.timeline import span

Severity = Literal["info", "warn", "bad"]

_FEW = 0.05  # a share that changes no conclusion
_MANY = 0.5
_STRAY_EVENTS = 0.01  # share of GPU events that may count as stray
_OVERLAP_WARN, _OVERLAP_BAD = 0.001, 0.05


def findings(context: Context) -> list[Finding]:
    """All findings about one rank's trace, in a fixed order."""
    checks = (
        _repairs,
        _device,
        _links,
        _steps,
        _times,
        _same_stream_overlap,
        _stray,
        _graphs,
    )
    return [finding for check in checks for finding in check(context)]


def _repairs(context: Context) -> Iterator[Finding]:
    repairs = context.trace.repairs
    if repairs.count():
        severity: Severity = "bad" if repairs.lost() else "warn"
        yield _finding("repaired", severity, repairs.count(), repairs.describe())


def _device(context: Context) -> Iterator[Finding]:
    if not len(context.gpu):
        yield _finding(
            "no_device_timeline", "warn", 0, "no GPU event: only tables about the CPU are filled"
        )


def _links(context: Context) -> Iterator[Finding]:
    if not len(context.gpu):
        return
    unlinked = int((~context.links.linked).sum())
    share = unlinked / len(context.gpu)
    severity = _grade(share, _FEW, _MANY)
    text = f"{unlinked} of {len(context.gpu)} GPU events have no recorded launch"
    yield _finding("unlinked_gpu_events", severity, share, f"{text} (value: share)")


def _steps(context: Context) -> Iterator[Finding]:
    numbers = context.steps.number
    if not numbers:
        yield _finding("no_steps", "warn", 0, "no ProfilerStep annotation on the CPU side")
        return
    absent = max(numbers) - min(numbers) + 1 - len(set(numbers))
    if absent:
        text = f"steps {min(numbers)} to {max(numbers)} are not all there"
        yield _finding("steps_missing", "warn", absent, text)
    if not len(context.gpu):
        return
    owned = context.steps.of(context.launched)
    empty = len(numbers) - len(np.unique(owned[owned >= 0]))
    if empty:
        severity: Severity = "bad" if empty * 2 >= len(numbers) else "warn"
        text = f"{empty} of {len(numbers)} steps launched no GPU event"
        yield _finding("steps_without_gpu_events", severity, empty, text)


def _times(context: Context) -> Iterator[Finding]:
    faults, total = context.trace.gpu_faults, max(context.trace.gpu_recorded, 1)
    for code, count, text in (
        ("zero_duration", faults.zero_duration, "last 0 ns"),
        ("negative_duration", faults.negative_duration, "last less than 0 ns, counted as 0"),
        ("no_duration", faults.no_duration, "have no finite duration, counted as 0"),
        ("no_timestamp", faults.no_timestamp, "have no finite time and are left out"),
        ("zero_timestamp", faults.zero_timestamp, "start at or before time 0"),
    ):
        if count:
            harmless = code in ("zero_duration", "zero_timestamp")
            severity: Severity = "info" if harmless else _grade(count / total, 0.0, _FEW)
            yield _finding(code, severity, count, f"{count} of {total} GPU events {text}")


def _same_stream_overlap(context: Context) -> Iterator[Finding]:
    """Kernels of one stream should not overlap: much of it means corrupt durations."""
    gpu = context.gpu
    keyed = Groups(gpu.stream)
    covered = union_length_by(keyed.of_row, gpu.start, gpu.end, len(keyed))
    over = int(gpu.duration.sum() - covered.sum())
    if over:
        share = over / max(context.all_busy.every.length(), 1)
        text = f"events of one stream overlap by {over / 1e3} us, {100 * share:.3g} % of busy time"
        severity = _grade(share, _OVERLAP_WARN, _OVERLAP_BAD)
        yield _finding("same_stream_overlap", severity, over / 1e3, text)


def _stray(context: Context) -> Iterator[Finding]:
    """A few events far away from all others stretch the span and make a device look idle."""
    flat = context.all_busy.every
    whole = span(context.all_busy)
    gap, split = _largest_gap(flat)
    if gap * 2 <= whole:
        return
    before = int((context.gpu.start < flat.start[split]).sum())
    few = min(before, len(context.gpu) - before)
    if few > max(1, _STRAY_EVENTS * len(context.gpu)):
        return
    kept = slice(split, None) if few == before else slice(None, split)
    trimmed = int(flat.end[kept][-1] - flat.start[kept][0])
    text = (
        f"{few} of {len(context.gpu)} GPU events lie {gap / 1e6} ms from the others and stretch "
        f"the span from {trimmed / 1e6} to {whole / 1e6} ms"
    )
    yield _finding("stray_gpu_events", "bad", few, text)


def _largest_gap(flat: Intervals) -> tuple[int, int]:
    """Length of the largest gap, and the index of the interval after it."""
    if flat.start.size < 2:
        return 0, 0
    gap: Ints = flat.start[1:] - flat.end[:-1]
    at = int(gap.argmax())
    return int(gap[at]), at + 1


def _graphs(context: Context) -> Iterator[Finding]:
    """Graph launches with far fewer GPU events than others: replays recorded in part."""
    launches = graph_launches(context)
    if not launches.size or not len(context.gpu):
        return
    events = np.bincount(
        context.links.call[context.links.linked], minlength=len(context.trace.calls)
    )
    each = events[launches]
    poor = int((each * 2 < each.max(initial=1)).sum())
    if poor:
        text = (
            f"{poor} of {launches.size} graph launches have under half the GPU events of the "
            f"largest ({int(each.max())}): replays may be recorded in part"
        )
        yield _finding("graph_replays_under_recorded", "warn", poor, text)


def _grade(share: float, warn: float, bad: float) -> Severity:
    if share > bad:
        return "bad"
    return "warn" if share > warn else "info"


def _finding(code: str, severity: Severity, value: float, message: str) -> Finding:
    return Finding(code=code, severity=severity, value=value, message=message)
