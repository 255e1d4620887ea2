"""Numbers in one rank's device tables that could become claims, before any threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from perfproof.claims.tables import RankTables, Row
from perfproof.schema.claims import Evidence

_NO_OWN_GROUP_CLAIM = frozenset({"comm", "memcpy", "memset"})


@dataclass(frozen=True)
class Candidate:
    """One number of one rank (or GPU). `of` and `what` complete the sentence that states it.

    `share` is the upper bound on the share of step time by the metric's rule; None for no share.
    """

    metric: str
    rank: int
    value: float
    share: float | None
    what: str
    evidence: list[Evidence]
    params: dict[str, Any] = field(default_factory=dict)
    of: str = "of the recorded window "
    place: tuple[str, str] | None = None  # what it is on and which one; None: the rank or GPU


def gpu_candidates(tables: RankTables) -> Iterator[Candidate]:
    """Candidates about the device; the rank must have GPU events."""
    for maker in (_timeline, _idle, _launches, _groups, _kernels, _copies):
        yield from maker(tables)


def exposed_comm(tables: RankTables) -> Candidate:
    """Exposed communication; its parameters are the caller's, who knows the topology."""
    alone = "alone_fraction_of_window"
    row = tables.row("kernel_groups", "group", "comm")
    return Candidate(
        "exposed_comm_fraction",
        tables.rank.rank,
        _timeline_share(tables, "exposed_comm_time"),
        tables.number("kernel_groups", row, alone),
        "is communication that no compute hides",
        [
            _of_timeline(tables, "exposed_comm_time"),
            _evidence(tables, "kernel_groups", f"share: group=comm, column {alone}"),
        ],
    )


def from_row(
    metric: str,
    tables: RankTables,
    row: Row,
    place: tuple[str, str],
    columns: tuple[str, str],
    what: str,
    params: dict[str, Any] | None = None,
) -> Candidate:
    """A candidate whose value and share stand in one row.

    `place` is the table and the row in words; `columns` are those of the value and of the share.
    """
    (name, key), (column, bound) = place, columns
    where = f"{key}, column {column}" + (f"; share: column {bound}" if bound != column else "")
    value, share = (tables.number(name, row, one) for one in columns)
    evidence = [_evidence(tables, name, where)]
    return Candidate(metric, tables.rank.rank, value, share, what, evidence, params or {})


def _timeline_share(tables: RankTables, kind: str) -> float:
    def milliseconds(row: str) -> float:
        found = tables.row("window_timeline", "type", row)
        return tables.number("window_timeline", found, "time ms")

    total = milliseconds("total_time")
    return milliseconds(kind) / total if total else 0.0


def _of_timeline(tables: RankTables, kind: str) -> Evidence:
    return _evidence(tables, "window_timeline", f"type={kind} over type=total_time, time ms")


def _evidence(tables: RankTables, name: str, where: str) -> Evidence:
    return Evidence(file=tables.file(name), where=where)


def _timeline(tables: RankTables) -> Iterator[Candidate]:
    column = "outside_loader_fraction_of_window"
    rows = tables.rows("idle")
    yield Candidate(
        "gpu_idle_fraction",
        tables.rank.rank,
        _timeline_share(tables, "idle_time"),
        min(1.0, math.fsum(tables.number("idle", row, column) for row in rows)),
        "has no GPU work running",
        [
            _of_timeline(tables, "idle_time"),
            _evidence(tables, "idle", f"share: sum of column {column}"),
        ],
    )


def _idle(tables: RankTables) -> Iterator[Candidate]:
    yield from_row(
        "host_late_idle_fraction",
        tables,
        tables.row("idle", "cause", "host_late"),
        ("idle", "cause=host_late"),
        ("fraction_of_window", "outside_loader_fraction_of_window"),
        "is GPU idle time because the host launched the next work too late",
    )


def _launches(tables: RankTables) -> Iterator[Candidate]:
    values = {row["metric"]: row for row in tables.rows("launch_stats")}
    for metric, name, what, params, of in (
        (
            "short_kernel_count_fraction",
            "short_kernel_count_fraction",
            "run for less than 10 µs",
            {},
            "of the kernels ",
        ),
        (
            "launch_to_start_us",
            "launch_to_start_us_p50",
            "is the median time from launch call to start: nothing is queued",
            {"quantile": 0.5},
            "",
        ),
    ):
        if values.get(name, {}).get("value"):
            value = tables.number("launch_stats", values[name], "value")
            evidence = [_evidence(tables, "launch_stats", f"metric={name}, column value")]
            yield Candidate(metric, tables.rank.rank, value, None, what, evidence, params, of)


def _groups(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("kernel_groups"):
        if row["group"] not in _NO_OWN_GROUP_CLAIM:
            yield from_row(
                "kernel_group_fraction",
                tables,
                row,
                ("kernel_groups", f"group={row['group']}"),
                ("fraction_of_window", "alone_fraction_of_window"),
                f"runs {row['group'].replace('_', '/')} kernels",
                {k: row[k] for k in ("group", "name_regex", "not_regex")},
            )


def _kernels(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("top_kernels"):
        if row["group"] not in _NO_OWN_GROUP_CLAIM:
            yield from_row(
                "top_kernel_fraction",
                tables,
                row,
                ("top_kernels", "row of the kernel"),
                ("fraction_of_window", "alone_fraction_of_window"),
                f"runs the {row['group']} kernel {_short(row['kernel'])}",
                {"kernel": row["kernel"], "group": row["group"]},
            )


def _copies(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("memcpy"):
        if row["direction"] != "other":
            yield from_row(
                "exposed_memcpy_fraction",
                tables,
                row,
                ("memcpy", f"direction={row['direction']}"),
                ("exposed_fraction_of_window", "alone_fraction_of_window"),
                f"copies {row['direction']} while nothing else runs",
                {"direction": row["direction"]},
            )


def _short(kernel: str, most: int = 60) -> str:
    return kernel if len(kernel) <= most else f"{kernel[: most - 1]}…"
