"""Telemetry in memory: time series by metric name, their samples as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Times: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[np.float64]
Matchers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Series:
    """Samples of one series: unix times in ms, strictly increasing, and finite values."""

    labels: Mapping[str, str]
    times_ms: Times
    values: Values

    def between(self, first_ms: int, last_ms: int) -> slice:
        """Where samples with `first_ms <= time <= last_ms` are."""
        low, high = np.searchsorted(self.times_ms, (first_ms, last_ms + 1))
        return slice(int(low), int(high))

    def matches(self, matchers: Matchers) -> bool:
        """Whether each label has the given value; a label that is not there is empty."""
        return all(self.labels.get(name, "") == value for name, value in matchers)


@dataclass
class Store:
    """Series by metric name, and what was odd about the file they are from."""

    series: dict[str, list[Series]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    samples: int = 0
    duplicates: int = 0
    outside: int = 0

    def add(self, name: str, one: Series) -> None:
        """Take one more series of a metric."""
        self.series.setdefault(name, []).append(one)

    def select(self, name: str, matchers: Matchers = ()) -> list[Series]:
        """Series of a metric whose labels match."""
        return [one for one in self.series.get(name, []) if one.matches(matchers)]

    def every(self) -> Iterator[tuple[str, Series]]:
        """All series with their names, sorted by name and labels."""
        for name in sorted(self.series):
            for one in sorted(self.series[name], key=lambda one: sorted(one.labels.items())):
                yield name, one

    def interval_s(self, names: Iterable[str]) -> float | None:
        """Median time between neighbouring samples of these metrics; None without two samples."""
        steps = [np.diff(one.times_ms) for name in names for one in self.series.get(name, [])]
        steps = [step for step in steps if len(step)]
        return float(np.median(np.concatenate(steps))) / 1000 if steps else None


@dataclass(frozen=True)
class Tidied:
    """Samples in order, and how many were not."""

    times_ms: Times
    values: Values
    backward: int
    duplicates: int


def tidy(times_ms: Times, values: Values) -> Tidied:
    """Sort by time; of samples with the same time the last one stays; drop what is no number."""
    finite = np.isfinite(values)
    if not finite.all():
        times_ms, values = times_ms[finite], values[finite]
    steps = np.diff(times_ms)
    backward = int((steps < 0).sum())
    if backward:
        order = np.argsort(times_ms, kind="stable")
        times_ms, values = times_ms[order], values[order]
        steps = np.diff(times_ms)
    duplicates = int((steps == 0).sum())
    if duplicates:
        last = np.append(steps != 0, True)
        times_ms, values = times_ms[last], values[last]
    return Tidied(times_ms, values, backward, duplicates)
