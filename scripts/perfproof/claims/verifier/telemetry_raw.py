"""Raw telemetry: standard library only, the verifier's own reading of table and export."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfproof.claims.metrics_telemetry import POWER_CAP_BITS, THERMAL_BITS
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.claims.verifier.telemetry_lines import raw_lines
from perfproof.claims.verifier.telemetry_stat import Key, Matchers, Stat, combined
from perfproof.claims.verifier.telemetry_times import Steady

_MOST_GPUS, _EXACT = 2**31, 2**53
_MIB = 1024 * 1024
_THROTTLED = "perfproof_throttled"

Sample = dict[str, float]
Points = list[tuple[float, float]]
_COLUMNS: dict[str, tuple[str, Callable[[float], float]]] = {
    "util_gpu_pct": ("rocm_utilization_percentage", float),
    "util_mem_pct": ("rocm_vram_busy_percentage", float),
    "mem_used_mib": ("perfproof_vram_used_bytes", lambda value: value * _MIB),
    "power_w": ("rocm_average_socket_power_watts", float),
    "sm_clock_mhz": ("rocm_sclk_clock_mhz", float),
}
_BITS = {"power_cap": POWER_CAP_BITS, "thermal": THERMAL_BITS}


@dataclass
class RawSource:
    """Samples of one file by metric: for each series its labels and (unix time, value) pairs."""

    window: Steady
    series: dict[str, list[tuple[dict[str, str], Points]]]
    how: str = "the raw samples"

    def mean(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Mean of the steady samples."""
        return self._each(metric, by, matchers, math.fsum, _mean)

    def largest(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Largest steady sample."""
        return self._each(metric, by, matchers, max, lambda points, _: max(v for _, v in points))

    def rate(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Increase a second of a counter. Raises `CannotSayError` where one went back."""
        return self._each(metric, by, matchers, math.fsum, _rate)

    def _each(
        self,
        metric: str,
        by: Key,
        matchers: Matchers,
        join: Callable[[list[float]], float],
        reduce: Callable[[Points, Steady], float | None],
    ) -> dict[Key, Stat]:
        found: dict[Key, list[Stat]] = defaultdict(list)
        for labels, every in self.series.get(metric, []):
            if all(labels.get(name, "") == value for name, value in matchers):
                points = [point for point in every if point[0] in self.window]
                value = reduce(points, self.window) if points else None
                if value is not None:
                    key = tuple(labels.get(name, "") for name in by)
                    found[key].append(Stat(value, len(points)))
        return {key: combined(parts, join) for key, parts in found.items()}


def _mean(points: Points, _window: Steady) -> float:
    return math.fsum(value for _, value in points) / len(points)


def _rate(points: Points, window: Steady) -> float | None:
    """Between neighbouring samples of the same piece of steady time."""
    places = [window.place(time) for time, _ in points]
    pairs = [
        (old, new)
        for old, new, before, after in zip(points, points[1:], places, places[1:], strict=False)
        if before == after
    ]
    if any(new[1] < old[1] for old, new in pairs):
        raise CannotSayError("the counter went backwards in steady time")
    seconds = math.fsum(new[0] - old[0] for old, new in pairs)
    return math.fsum(new[1] - old[1] for old, new in pairs) / seconds if seconds else None


def read_table(path: Path, window: Steady) -> RawSource:
    """The NVML sampler's table."""
    found: dict[tuple[str, str, str], dict[float, float]] = defaultdict(dict)
    for sample in _rows(path):
        gpu, time = sample.get("gpu"), sample.get("unix_ts")
        if gpu is None or time is None:
            continue
        for column, (metric, convert) in _COLUMNS.items():
            if column in sample:
                found[metric, str(int(gpu)), ""][time] = convert(sample[column])
        if "throttle_reasons" in sample:
            for reason, bits in _BITS.items():
                held = int(sample["throttle_reasons"]) & bits != 0
                found[_THROTTLED, str(int(gpu)), reason][time] = float(held)
    series: dict[str, list[tuple[dict[str, str], Points]]] = defaultdict(list)
    for (metric, card, reason), points in found.items():
        labels = {"card": card, **({"reason": reason} if reason else {})}
        series[metric].append((labels, sorted(points.items())))
    return RawSource(window, series)


def read_lines(path: Path, window: Steady) -> RawSource:
    """The export: a JSON object a line."""
    found: dict[tuple[str, ...], dict[float, float]] = defaultdict(dict)
    labels_of: dict[tuple[str, ...], dict[str, str]] = {}
    for line in _json_lines(path):
        labels = {str(name): str(text) for name, text in line["metric"].items()}
        key = tuple(f"{name}={labels[name]}" for name in sorted(labels))
        labels_of[key] = labels
        for time, value in zip(line["timestamps"], line["values"], strict=True):
            if isinstance(value, int | float) and math.isfinite(value):
                found[key][time / 1000] = float(value)
    series: dict[str, list[tuple[dict[str, str], Points]]] = defaultdict(list)
    for key, points in found.items():
        series[labels_of[key]["__name__"]].append((labels_of[key], sorted(points.items())))
    return RawSource(window, series)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Lines that are series."""
    for text in raw_lines(path):
        if (line := _series(text)) is not None:
            yield line


def importable(path: Path) -> Iterator[bytes]:
    """Lines as a store takes them: without staleness markers and infinities, ended each."""
    for text in raw_lines(path):
        if b"null" in text or b"Inf" in text or b"NaN" in text:
            if (line := _series(text)) is not None:
                yield json.dumps(_numbers_only(line)).encode() + b"\n"
        else:
            yield text + b"\n"


def _numbers_only(line: dict[str, Any]) -> dict[str, Any]:
    pairs = zip(line["timestamps"], line["values"], strict=True)
    good = [(t, v) for t, v in pairs if isinstance(v, int | float) and math.isfinite(v)]
    return {**line, "timestamps": [t for t, _ in good], "values": [v for _, v in good]}


def _series(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
        good = line["metric"]["__name__"] and len(line["timestamps"]) == len(line["values"])
        return line if good and all(isinstance(t, int) for t in line["timestamps"]) else None
    except (ValueError, KeyError, TypeError):
        return None


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
