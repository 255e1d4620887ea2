"""The tables that a page shows, read back with their digests checked."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import digest_file
from perfproof.schema.traces import RankTrace, Table, TraceSummary

Row = dict[str, str]
PARTS = ("computation_time", "exposed_comm_time", "exposed_memcpy_time", "idle_time")


@dataclass(frozen=True)
class Timeline:
    """Where the window of one rank goes, milliseconds; `parts` in the order of `PARTS`."""

    rank: int
    parts: tuple[float, ...]
    total_ms: float

    def share(self, index: int) -> float:
        """Part number `index` as a fraction of the window."""
        return self.parts[index] / self.total_ms if self.total_ms else 0.0


@dataclass(frozen=True)
class Top:
    """One kernel or operator of the ranking."""

    name: str
    count: int
    time_us: float
    fraction: float


@dataclass(frozen=True)
class Tops:
    """The most expensive kernels (or CPU operators) of one rank."""

    rank: int
    kind: str
    rows: list[Top] = field(default_factory=list)


def read_rows(base: Path, table: Table) -> list[Row]:
    """Rows of a CSV table; `InputError` when it is not the file that the summary describes."""
    path = base / table.file
    if not path.is_file():
        raise InputError(path, "no such file", "a table of the trace summary")
    if digest_file(path) != table.blake3:
        raise InputError(path, "another digest than in the trace summary", "the same analysis")
    # A kernel's name has no longest length; the reader's default limit is 128 KiB.
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def timelines(base: Path, summary: TraceSummary) -> list[Timeline]:
    """`window_timeline.csv` of every rank with device events."""
    found = (rank for rank in summary.ranks if rank.gpu_events and "window_timeline" in rank.tables)
    return [_timeline(rank.rank, base, rank.tables["window_timeline"]) for rank in found]


def _timeline(rank: int, base: Path, table: Table) -> Timeline:
    times = {row["type"]: float(row["time ms"]) for row in read_rows(base, table)}
    absent = sorted({*PARTS, "total_time"} - times.keys())
    if absent:
        raise InputError(base / table.file, "no such row", "every timeline row", absent[0])
    return Timeline(rank, tuple(times[part] for part in PARTS), times["total_time"])


def profiled_step_s(base: Path, summary: TraceSummary) -> float | None:
    """Median time of the marked steps of all ranks, seconds; None where none is marked."""
    tables = (rank.tables["steps"] for rank in summary.ranks if "steps" in rank.tables)
    times = [float(row["duration_us"]) for table in tables for row in read_rows(base, table)]
    return statistics.median(times) / 1e6 if times else None


def tops(base: Path, summary: TraceSummary, limit: int) -> Tops | None:
    """Top kernels of the first rank that has any, else its top CPU operators."""
    for kind, columns in _TOP_TABLES.items():
        for rank in summary.ranks:
            rows = list(_tops(base, rank, kind, columns))
            if rows:
                return Tops(rank.rank, kind, rows[:limit])
    return None


_TOP_TABLES = {
    "top_kernels": ("kernel", "union_us", "fraction_of_window"),
    "cpu_ops": ("op", "self_us", "self_fraction_of_window"),
}


def _tops(base: Path, rank: RankTrace, kind: str, columns: tuple[str, str, str]) -> Iterator[Top]:
    if kind not in rank.tables:
        return
    name, time, fraction = columns
    rows = [
        Top(row[name], int(row["count"]), float(row[time]), float(row[fraction]))
        for row in read_rows(base, rank.tables[kind])
    ]
    yield from sorted(rows, key=lambda top: (-top.time_us, top.name))
