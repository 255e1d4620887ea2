"""Numbers in one rank's tables that could become claims, before any threshold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from perfproof.claims.rules import BLOCKING_CALL_REGEX, LEAST_OPERATOR_BESIDE_GPU
from perfproof.claims.tables import RankTables
from perfproof.schema.claims import Evidence

_NO_OWN_GROUP_CLAIM = frozenset({"comm", "memcpy", "memset"})
_BLOCKING = re.compile(rf"^{BLOCKING_CALL_REGEX}")


@dataclass(frozen=True)
class Candidate:
    """One number of one rank (or GPU). `of` and `what` complete the sentence that states it."""

    metric: str
    rank: int
    value: float
    what: str
    evidence: Evidence
    params: dict[str, Any] = field(default_factory=dict)
    of: str = "of the recorded window "


def gpu_candidates(tables: RankTables) -> Iterator[Candidate]:
    """Candidates of a rank with GPU events."""
    for maker in (_timeline, _idle, _launches, _groups, _kernels, _copies, _calls):
        yield from maker(tables)


def host_candidates(tables: RankTables) -> Iterator[Candidate]:
    """Candidates about the host's threads."""
    for maker in (_loader, _operators):
        yield from maker(tables)


def idle_share(tables: RankTables) -> float:
    """Share of the window without GPU work; 1 where the trace has no GPU events."""
    if not tables.rank.gpu_events:
        return 1.0
    return _timeline_share(tables, "idle_time")


@dataclass(frozen=True)
class Idle:
    """Shares of one rank's window without GPU work: all of it, and the part in the data loader."""

    whole: float
    loader: float


def idle_of(tables: RankTables) -> Idle:
    """Idle time of a rank."""
    loader = sum(one.value for one in _loader(tables) if tables.rank.gpu_events)
    return Idle(idle_share(tables), loader)


def exposed_comm(tables: RankTables) -> Candidate:
    """Exposed communication; its parameters are the caller's, who knows the topology."""
    return Candidate(
        "exposed_comm_fraction",
        tables.rank.rank,
        _timeline_share(tables, "exposed_comm_time"),
        "is communication that no compute hides",
        _evidence(
            tables, "window_timeline", "type=exposed_comm_time over type=total_time, time ms"
        ),
    )


def _timeline_share(tables: RankTables, kind: str) -> float:
    def milliseconds(row: str) -> float:
        found = tables.row("window_timeline", "type", row)
        return tables.number("window_timeline", found, "time ms")

    total = milliseconds("total_time")
    return milliseconds(kind) / total if total else 0.0


def _evidence(tables: RankTables, name: str, where: str) -> Evidence:
    return Evidence(file=tables.file(name), where=where)


def _timeline(tables: RankTables) -> Iterator[Candidate]:
    yield Candidate(
        "gpu_idle_fraction",
        tables.rank.rank,
        idle_share(tables),
        "has no GPU work running",
        _evidence(tables, "window_timeline", "type=idle_time over type=total_time, time ms"),
    )


def _idle(tables: RankTables) -> Iterator[Candidate]:
    row = tables.row("idle", "cause", "host_late")
    yield Candidate(
        "host_late_idle_fraction",
        tables.rank.rank,
        tables.number("idle", row, "fraction_of_window"),
        "is GPU idle time because the host launched the next work too late",
        _evidence(tables, "idle", "cause=host_late, column fraction_of_window"),
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
            yield Candidate(
                metric,
                tables.rank.rank,
                tables.number("launch_stats", values[name], "value"),
                what,
                _evidence(tables, "launch_stats", f"metric={name}, column value"),
                params,
                of,
            )


def _groups(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("kernel_groups"):
        if row["group"] not in _NO_OWN_GROUP_CLAIM:
            yield Candidate(
                "kernel_group_fraction",
                tables.rank.rank,
                tables.number("kernel_groups", row, "fraction_of_window"),
                f"runs {row['group'].replace('_', '/')} kernels",
                _evidence(
                    tables, "kernel_groups", f"group={row['group']}, column fraction_of_window"
                ),
                {k: row[k] for k in ("group", "name_regex", "not_regex")},
            )


def _kernels(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("top_kernels"):
        if row["group"] not in _NO_OWN_GROUP_CLAIM:
            yield Candidate(
                "top_kernel_fraction",
                tables.rank.rank,
                tables.number("top_kernels", row, "fraction_of_window"),
                f"runs the {row['group']} kernel {_short(row['kernel'])}",
                _evidence(tables, "top_kernels", "row of the kernel, column fraction_of_window"),
                {"kernel": row["kernel"], "group": row["group"]},
            )


def _copies(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("memcpy"):
        if row["direction"] != "other":
            yield Candidate(
                "exposed_memcpy_fraction",
                tables.rank.rank,
                tables.number("memcpy", row, "exposed_fraction_of_window"),
                f"copies {row['direction']} while nothing else runs",
                _evidence(
                    tables,
                    "memcpy",
                    f"direction={row['direction']}, column exposed_fraction_of_window",
                ),
                {"direction": row["direction"]},
            )


def _loader(tables: RankTables) -> Iterator[Candidate]:
    """One loader claim: of its idle time where there is a GPU, of all its time otherwise."""
    rows = tables.rows("dataloader")
    column, metric, what = (
        ("gpu_idle_fraction_of_window", "dataloader_gpu_idle_fraction",
         "is GPU idle time while the training thread waits for the data loader")
        if tables.rank.gpu_events
        else ("fraction_of_window", "dataloader_fraction",
              "is the training thread waiting for the data loader")
    )  # fmt: skip
    if len(rows) == 1:
        yield Candidate(
            metric,
            tables.rank.rank,
            tables.number("dataloader", rows[0], column),
            what,
            _evidence(tables, "dataloader", f"thread={rows[0]['thread']}, column {column}"),
        )


def _calls(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("runtime_calls"):
        if _BLOCKING.match(row["call"]):
            yield Candidate(
                "runtime_call_fraction",
                tables.rank.rank,
                tables.number("runtime_calls", row, "fraction_of_window"),
                f"is spent in {row['call']}",
                _evidence(
                    tables, "runtime_calls", f"call={row['call']}, column fraction_of_window"
                ),
                {"call": row["call"]},
            )


def _operators(tables: RankTables) -> Iterator[Candidate]:
    least = LEAST_OPERATOR_BESIDE_GPU if tables.rank.gpu_events else 0.0
    idle = idle_share(tables)
    for row in tables.rows("cpu_ops"):
        if min(idle, tables.number("cpu_ops", row, "self_fraction_of_window")) < least:
            continue
        yield Candidate(
            "cpu_op_self_fraction",
            tables.rank.rank,
            tables.number("cpu_ops", row, "self_fraction_of_window"),
            f"is spent in the CPU operator {row['op']} itself",
            _evidence(tables, "cpu_ops", f"op={row['op']}, column self_fraction_of_window"),
            {"op": row["op"]},
        )


def _short(kernel: str, most: int = 60) -> str:
    return kernel if len(kernel) <= most else f"{kernel[: most - 1]}…"
