"""Read back what the collectors of all nodes left, however they ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfproof.core.series import Series, from_line

PATTERN = "samples-*.jsonl"
_FAULTS = (ValueError, KeyError, TypeError, AttributeError, OverflowError)


@dataclass
class Loaded:
    """Samples as they were written, and lines that are none."""

    series: list[Series] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def ticks(self) -> dict[str, int]:
        """How many times each node was sampled."""
        times: dict[str, set[int]] = {}
        for one in self.series:
            times.setdefault(one.metric.get("instance", ""), set()).update(one.times_ms)
        return {node: len(found) for node, found in sorted(times.items())}


def load(folder: Path) -> Loaded:
    """Samples of all files in `folder`."""
    whole = Loaded()
    for path in sorted(folder.glob(PATTERN)):
        part = load_file(path)
        whole.series += part.series
        whole.problems += part.problems
    return whole


def load_file(path: Path) -> Loaded:
    """Samples of one file: ticks of a sampler, or series as a store exports them."""
    found, columns, bad = Loaded(), [], []
    for number, text in _lines(path):
        try:
            record = json.loads(text)
            if isinstance(record, dict) and "metric" in record:
                found.series.append(from_line(text))
            elif isinstance(record, dict):
                columns = _columns(record)
                found.series += columns
            else:
                _row(record, columns)
        except _FAULTS:
            bad.append(number)
    if bad:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        what = f"line {bad[0]}{more} left out; expected [time_ms, value, …] under its series"
        found.problems.append(f"{path.name}: {what}")
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines with their numbers: what a killed writer left of a line is not told of."""
    with path.open("rb") as stream:
        for number, text in enumerate(stream, 1):
            if text.endswith(b"\n"):
                yield number, text


def _columns(record: dict[str, Any]) -> list[Series]:
    return [Series({str(k): str(v) for k, v in labels.items()}) for labels in record["series"]]


def _row(record: list[Any], columns: list[Series]) -> None:
    time, *values = record
    if len(values) != len(columns) or not isinstance(time, int):
        raise ValueError("another number of values than of series")
    numbers = [float(value) for value in values]
    for series, number in zip(columns, numbers, strict=True):
        series.add(time, number)


def samples_of(ticks: Mapping[str, int], node: str) -> int:
    """Samples of a node; a collector may name it without its domain."""
    return ticks.get(node, ticks.get(node.split(".")[0], 0))
