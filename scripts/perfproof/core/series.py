"""Time series and the file that carries them: VictoriaMetrics' JSON lines, gzipped, canonical.

One line a series, sorted by its labels; times in ms since 1970, ascending, each once. What wrote
the samples (a sampler, Omnistat, a store that they went through) leaves no mark on the bytes.
"""

from __future__ import annotations

import gzip
import json
import os
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXPORT_FILE = "export.jsonl.gz"
_EXACT = 2.0**53
# Fast, and the same bytes from the same zlib.
_LEVEL = 6

Key = tuple[tuple[str, str], ...]


@dataclass
class Series:
    """Samples of one series; `metric` holds its labels, its name under `__name__`."""

    metric: dict[str, str]
    times_ms: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    @property
    def key(self) -> Key:
        """Labels in order: what makes it the same series."""
        return tuple(sorted(self.metric.items()))

    def add(self, time_ms: int, value: float) -> None:
        """Append one sample."""
        self.times_ms.append(time_ms)
        self.values.append(value)


def from_line(text: str | bytes) -> Series:
    """A series from its line. Raises ValueError, KeyError or TypeError for anything else."""
    record: dict[str, Any] = json.loads(text)
    metric = {str(name): str(value) for name, value in record["metric"].items()}
    times, values = array("q", record["timestamps"]), array("d", record["values"])
    if len(times) != len(values):
        raise ValueError(f"{len(values)} values and {len(times)} timestamps")
    return Series(metric, times, values)


def merged(parts: Iterable[Series]) -> list[Series]:
    """All samples of each series together, by time; of two samples of one time the last counts."""
    together: dict[Key, Series] = {}
    for part in parts:
        whole = together.setdefault(part.key, Series(part.metric))
        whole.times_ms.extend(part.times_ms)
        whole.values.extend(part.values)
    return [_in_order(together[key]) for key in sorted(together) if together[key].times_ms]


def _in_order(series: Series) -> Series:
    times = series.times_ms
    if all(times[i] < times[i + 1] for i in range(len(times) - 1)):
        return series
    at = dict(zip(times, series.values, strict=True))
    ordered = sorted(at)
    return Series(series.metric, array("q", ordered), array("d", (at[time] for time in ordered)))


def line(series: Series) -> str:
    """The series' canonical line."""
    record = {
        "metric": _name_first(series.metric),
        "values": [_number(value) for value in series.values],
        "timestamps": list(series.times_ms),
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _name_first(metric: Mapping[str, str]) -> dict[str, str]:
    names = sorted(metric, key=lambda name: (name != "__name__", name))
    return {name: metric[name] for name in names}


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def write_export(path: Path, parts: Iterable[Series]) -> int:
    """Write the series of all `parts` to `path`; the number of series."""
    series = merged(parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
            for one in series:
                packed.write(f"{line(one)}\n".encode("utf-8", "backslashreplace"))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return len(series)


def read_export(path: Path) -> list[Series]:
    """The series of a file, gzipped or not."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return [from_line(text) for text in data.splitlines() if text.strip()]
