"""Raw telemetry: standard library only, its own idea of the steady window."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import statistics
import zlib
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.schema.run import Role

_WARMUP_STEPS, _LONGEST_STEP, _AVERAGING_S = 3, 3.0, 1.0
_UNIX_2001_NS = 10**18
_MOST_GPUS, _EXACT = 2**31, 2**53

Sample = dict[str, float]
Span = tuple[float, float]


@dataclass(frozen=True)
class Steady:
    """Steady time in unix seconds: intervals between step records, and parts to leave out."""

    intervals: list[Span]
    left_out: list[Span]

    def __contains__(self, time: float) -> bool:
        """Whether the second before `time` (what a sample is about) is steady throughout."""
        start = time - _AVERAGING_S
        if any(low < time and start < high for low, high in self.left_out):
            return False
        covered = sum(max(0.0, min(b, time) - max(a, start)) for a, b in self.intervals)
        return covered >= _AVERAGING_S - 1e-6


def samples_by_gpu(files: RunFiles) -> dict[int, list[Sample]]:
    """Steady samples of each GPU in time order. Raises `CannotSayError`."""
    path = files.optional(Role.TELEMETRY)
    if path is None:
        raise CannotSayError("the run left no telemetry")
    window = steady(files)
    found: dict[int, list[Sample]] = defaultdict(list)
    for sample in _rows(path):
        gpu, time = sample.get("gpu"), sample.get("unix_ts")
        if gpu is not None and time is not None and time in window:
            found[int(gpu)].append(sample)
    return {gpu: sorted(rows, key=lambda row: row["unix_ts"]) for gpu, rows in found.items()}


def _rows(path: Path) -> list[Sample]:
    """Samples of the rows that fit the header; the others cannot be told apart by column."""
    try:
        rows = [cells for cells in csv.reader(io.StringIO(_text(path)), strict=True) if cells]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as fault:
        raise CannotSayError(f"{path.name}: {fault}") from None
    header = rows[0] if rows else []
    if len(set(header)) != len(header):
        raise CannotSayError(f"{path.name}: two columns of one name")
    return [_numbers(header, cells) for cells in rows[1:] if len(cells) == len(header)]


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")


def _numbers(header: list[str], cells: list[str]) -> Sample:
    """The cells of a row that are finite numbers which such a column can hold."""
    numbers = {}
    for name, text in zip(header, cells, strict=True):
        try:
            value = float("nan" if "_" in text else text)
        except ValueError:
            continue
        if math.isfinite(value) and _possible(name, value):
            numbers[name] = value
    return numbers


def _possible(name: str, value: float) -> bool:
    """No percentage above 100, no half GPU, no mask beyond what a float holds exactly."""
    if name in ("util_gpu_pct", "util_mem_pct"):
        return 0 <= value <= 100
    if name in ("gpu", "throttle_reasons"):
        return value.is_integer() and 0 <= value <= (_MOST_GPUS if name == "gpu" else _EXACT)
    return value >= 0 or name == "temp_c"


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
