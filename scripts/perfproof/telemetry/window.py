"""The steady window of a run in unix time, from what the run itself recorded."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal

from perfproof.core.errors import InputError
from perfproof.core.files import read_json
from perfproof.schema.base import Problem
from perfproof.schema.run import Inventory, Role
from perfproof.schema.traces import TraceSummary

WARMUP_STEPS = 3
# A pause between steps (validation, checkpoint, the profiler writing its file) is longer than this
# many median steps: telemetry of that time is not telemetry of steps.
PAUSE_FACTOR = 3.0
# NVML averages utilization and power over up to a second: a sample is about the time before it.
AVERAGING_S = 1.0
_UNIX_2001_NS = 10**18
_FOREVER_MS = 2**62
# `[tag] step i=0 rank=0 t=1796053011.472762 …`: one record a step with its unix time.
_RECORD = re.compile(rb"\[\w+\] step\b([^\r\n]*)")
_TIME = re.compile(rb"\bt=(\d{9,11}(?:\.\d+)?)(?!\S)")
_RANK = re.compile(rb"\brank=(\d+)")

Span = tuple[float, float]


@dataclass(frozen=True)
class Window:
    """Stretches of steady steps in unix seconds, in order; none where nothing recorded them."""

    kind: Literal["steps", "run", "none"]
    stretches: tuple[Span, ...] = ()
    problems: tuple[Problem, ...] = ()
    job: tuple[float | None, float | None] = (None, None)

    @property
    def start(self) -> float | None:
        """Start of the first stretch."""
        return self.stretches[0][0] if self.stretches else None

    @property
    def end(self) -> float | None:
        """End of the last stretch."""
        return self.stretches[-1][1] if self.stretches else None

    @property
    def excluded(self) -> list[Span]:
        """What lies between the stretches."""
        return [(a[1], b[0]) for a, b in pairwise(self.stretches)]

    def spans_ms(self) -> list[tuple[int, int]]:
        """First and last ms of samples whose whole averaging time lies in a stretch."""
        spans = [
            (
                math.ceil(round((start + AVERAGING_S) * 1e6) / 1e3),
                math.floor(round(end * 1e6) / 1e3),
            )
            for start, end in self.stretches
        ]
        return [span for span in spans if span[1] >= span[0]]

    def job_ms(self) -> tuple[int, int]:
        """First and last ms of the run; without end where the run has none on record."""
        start, end = self.job
        return (
            -_FOREVER_MS if start is None else math.floor(start * 1000),
            _FOREVER_MS if end is None else math.ceil(end * 1000),
        )


def steady_window(inventory: Inventory, profiled: Sequence[Span] = ()) -> Window:
    """Time in which steady steps ran; without step times, the run from start to end.

    The first `WARMUP_STEPS` step records are warm-up; pauses and the `profiled` parts (recorded
    windows of the traces) are left out. No file's modification time is ever used.
    """
    start, end, problems = _run_span(inventory)
    steps = _step_times(inventory)[WARMUP_STEPS:]
    kind: Literal["steps", "run"]
    if len(steps) > 1:
        kind, stretches = "steps", _without_pauses(steps)
    elif start is not None and end is not None:
        kind, stretches = "run", [(start, end)]
    else:
        return Window("none", (), problems, (start, end))
    inside = [(max(a, start or a), min(b, end or b)) for a, b in stretches]
    kept = tuple(span for span in _without(inside, profiled) if span[1] > span[0])
    if not kept:
        what = "step times lie outside the run's start and end; expected them inside"
        found = (*problems, Problem(where="log", what=what))
        return Window("none", (), found, (start, end))
    return Window(kind, kept, problems, (start, end))


def _without_pauses(steps: list[float]) -> list[Span]:
    longest = PAUSE_FACTOR * statistics.median(b - a for a, b in pairwise(steps))
    stretches = [(steps[0], steps[0])]
    for before, now in pairwise(steps):
        if now - before <= longest:
            stretches[-1] = (stretches[-1][0], now)
        else:
            stretches.append((now, now))
    return stretches


def _without(stretches: list[Span], profiled: Sequence[Span]) -> list[Span]:
    for low, high in profiled:
        stretches = [
            piece
            for start, end in stretches
            for piece in ((start, min(end, low)), (max(start, high), end))
            if piece[1] > piece[0]
        ]
    return stretches


def _step_times(inventory: Inventory) -> list[float]:
    """Times of the step records of one rank, sorted: of the first log and rank that has any."""
    for artifact in inventory.of(Role.LOG):
        try:
            text = (Path(inventory.root) / artifact.path).read_bytes()
        except OSError:
            continue
        by_rank: dict[bytes, list[float]] = {}
        for record in _RECORD.findall(text):
            if time := _TIME.search(record):
                rank = _RANK.search(record)
                by_rank.setdefault(rank[1] if rank else b"", []).append(float(time[1]))
        if by_rank:
            return sorted(by_rank[min(by_rank)])
    return []


def profiled_spans(traces: TraceSummary) -> list[Span]:
    """Recorded windows of the traces in unix seconds; traces without a unix clock have none."""
    spans = set()
    for rank in traces.ranks:
        if rank.window_start_ns is None or rank.window_duration_ns is None:
            continue
        start = (rank.base_time_ns or 0) + rank.window_start_ns
        if start > _UNIX_2001_NS:
            spans.add((start / 1e9, (start + rank.window_duration_ns) / 1e9))
    return sorted(spans)


def _run_span(inventory: Inventory) -> tuple[float | None, float | None, tuple[Problem, ...]]:
    problems: list[Problem] = []
    for role in (Role.MANIFEST, Role.META):
        for artifact in inventory.of(role):
            try:
                span = _span_in(Path(inventory.root) / artifact.path)
            except InputError as fault:
                problems.append(Problem(where=artifact.path, what=fault.found))
                continue
            if span is not None:
                return *span, tuple(problems)
    return None, None, tuple(problems)


def _span_in(path: Path) -> tuple[float | None, float | None] | None:
    """Start and end in a manifest (`started_at`) or a meta file (`t_start`)."""
    record = read_json(path)
    if not isinstance(record, dict):
        return None
    if "started_at" in record:
        return _unix(record["started_at"], path), _unix(record.get("ended_at"), path)
    if isinstance(record.get("t_start"), int | float):
        end = record.get("t_end")
        return float(record["t_start"]), float(end) if isinstance(end, int | float) else None
    return None


def _unix(text: object, path: Path) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        raise InputError(path, f"'{text}'", "an ISO 8601 time", "started_at") from None
    if moment.tzinfo is None:
        raise InputError(path, f"'{text}' without a time zone", "UTC", "started_at")
    return moment.timestamp()
