"""Steady time, from the run's own records: the verifier's own idea of it, standard library only."""

from __future__ import annotations

import json
import math
import re
import statistics
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.schema.run import Role

_WARMUP_STEPS, _LONGEST_STEP, _AVERAGING_S = 3, 3.0, 1.0
_UNIX_2001_NS = 10**18
_TOUCHING_S = 1e-6

Span = tuple[float, float]


@dataclass(frozen=True)
class Steady:
    """Steady time in unix seconds: intervals between step records, and parts to leave out."""

    intervals: list[Span]
    left_out: list[Span]

    def __contains__(self, time: float) -> bool:
        """Whether the second before `time` (what a sample is about) is steady throughout."""
        return self.place(time) is not None

    def place(self, time: float) -> int | None:
        """Which of the spans holds the second before `time`; None for none."""
        number = bisect_right(self._starts, time - _AVERAGING_S + _TOUCHING_S) - 1
        if number < 0 or time > self.spans[number][1] + _TOUCHING_S:
            return None
        return number

    @cached_property
    def spans(self) -> list[Span]:
        """Steady time in disjoint pieces, in order."""
        joined: list[Span] = []
        for start, end in sorted(self.intervals):
            if joined and start <= joined[-1][1] + _TOUCHING_S:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((start, end))
        for low, high in self.left_out:
            joined = [piece for span in joined for piece in _cut(span, low, high)]
        return joined

    @cached_property
    def _starts(self) -> list[float]:
        return [start for start, _ in self.spans]


def _cut(span: Span, low: float, high: float) -> list[Span]:
    """The span without what lies between `low` and `high`."""
    start, end = span
    if high <= start or low >= end:
        return [span]
    return [piece for piece in ((start, low), (high, end)) if piece[1] > piece[0]]


def steady(files: RunFiles) -> Steady:
    """Steady time, from the run's own records. Raises `CannotSayError`."""
    run_start, run_end = _run_bounds(files) or (None, None)
    times = _step_times(files)[_WARMUP_STEPS:]
    if len(times) > 1:
        steps = list(pairwise(times))
        usual = statistics.median(b - a for a, b in steps)
        intervals = [(a, b) for a, b in steps if b - a <= _LONGEST_STEP * usual]
    elif run_start is not None and run_end is not None:
        intervals = [(run_start, run_end)]
    else:
        raise CannotSayError("the run's records give no time for its steps")
    low = -math.inf if run_start is None else run_start
    high = math.inf if run_end is None else run_end
    return Steady([(max(a, low), min(b, high)) for a, b in intervals], _profiled(files))


def _step_times(files: RunFiles) -> list[float]:
    """Unix times of one rank's step records, from the first log that has any."""
    for artifact in files.inventory.of(Role.LOG):
        ranks: dict[str, list[float]] = defaultdict(list)
        for line in re.split(r"[\r\n]+", files.path(artifact).read_text("utf-8", "replace")):
            words = re.split(r"\[\w+\] step(?=\s)", line, maxsplit=1)
            if len(words) == 2:
                fields = dict(word.split("=", 1) for word in words[1].split() if "=" in word)
                ranks[fields.get("rank", "")] += _unix(fields.get("t", ""))
        timed = {rank: times for rank, times in ranks.items() if times}
        if timed:
            return sorted(timed[min(timed)])
    return []


def _unix(text: str) -> list[float]:
    """The time in a list, or an empty one if it is no unix time."""
    try:
        time = float(text)
    except ValueError:
        return []
    return [time] if 1e8 <= time < 1e11 else []


def _run_bounds(files: RunFiles) -> tuple[float | None, float | None] | None:
    for role in (Role.MANIFEST, Role.META):
        for artifact in files.inventory.of(role):
            try:
                record = json.loads(files.path(artifact).read_text(encoding="utf-8"))
            except ValueError:
                continue
            bounds = _bounds_in(record) if isinstance(record, dict) else None
            if bounds:
                return bounds
    return None


def _bounds_in(record: dict[str, Any]) -> tuple[float | None, float | None] | None:
    if "started_at" in record:
        start, end = record["started_at"], record.get("ended_at")
        return _iso(start), _iso(end)
    start, end = record.get("t_start"), record.get("t_end")
    return (_number(start), _number(end)) if _number(start) is not None else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _iso(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None


def _profiled(files: RunFiles) -> list[Span]:
    """Recorded windows of the traces."""
    parts = []
    for rank, trace in files.traces().items():
        try:
            low, high = (trace.base_time + edge for edge in files.partial_scene(rank).window)
        except CannotSayError:
            continue
        if low > _UNIX_2001_NS:
            parts.append((low / 1e9, high / 1e9))
    return parts
