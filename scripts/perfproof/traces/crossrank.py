"""`collective_skew` and `collective_wait`: who waits for whom.

In a collective all ranks end together; one that arrives early waits in it. So the rank with the
shortest n-th collective of a process group came last, and the others' excess is their wait. Only
durations are compared: clocks of different hosts need not agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from perfproof.schema.traces import Finding
from perfproof.traces.context import Context
from perfproof.traces.csvfile import Row, Rows, us
from perfproof.traces.window import Window

SKEW_COLUMNS = (
    "process_group",
    "ranks",
    "index",
    "collective",
    "rank",
    "dur_us",
    "min_dur_us",
    "wait_us",
)
WAIT_COLUMNS = ("rank", "collectives", "wait_us", "fraction_of_window", "least_waiting_rank")

_Group = tuple[str, str]  # process group name, its ranks


@dataclass(frozen=True)
class RankCollectives:
    """One rank's collectives of the window: by process group (name, ns) in order of start."""

    rank: int
    window: Window
    steps: list[int]
    groups: dict[_Group, list[tuple[str, int]]]


@dataclass
class Skew:
    """Both tables, and what kept collectives from being matched, by rank."""

    tables: dict[str, Rows] = field(default_factory=dict)
    findings: dict[int, list[Finding]] = field(default_factory=lambda: defaultdict(list))


def rank_collectives(context: Context) -> RankCollectives:
    """What cross-rank tables need of one rank."""
    gpu = context.gpu
    groups: defaultdict[_Group, list[tuple[str, int]]] = defaultdict(list)
    for index in np.flatnonzero(context.window.inside & context.comm).tolist():
        known = gpu.collective.get(index)
        name = known.name if known else context.name(int(gpu.name[index])).split("(")[0]
        group = (known and known.process_group) or "all"
        ranks = (known and known.ranks) or ""
        groups[group, ranks].append((name, int(gpu.duration[index])))
    return RankCollectives(context.rank, context.window, context.steps.number, dict(groups))


def skew(ranks: Sequence[RankCollectives]) -> Skew:
    """Match collectives over ranks; no tables when fewer than two ranks have any."""
    found = Skew()
    taking = [rank for rank in ranks if rank.groups]
    if len(taking) < 2:
        return found
    rows: list[Row] = []
    for group in sorted({group for rank in taking for group in rank.groups}):
        members = [rank for rank in taking if group in rank.groups]
        if len(members) > 1 and _comparable(group, members, found):
            rows += _rows(group, members)
    found.tables = {
        "collective_skew": Rows(SKEW_COLUMNS, rows),
        "collective_wait": Rows(WAIT_COLUMNS, _waits(taking, rows)),
    }
    return found


def _comparable(group: _Group, members: list[RankCollectives], found: Skew) -> bool:
    """Whether the n-th collective is the same one on every rank, as far as can be told."""
    names = [[name for name, _ in rank.groups[group]] for rank in members]
    counts = [len(each) for each in names]
    if len(set(counts)) > 1:
        code, what = "collective_count_mismatch", "different numbers of collectives"
    elif any(each != names[0] for each in names):
        code, what = "collective_order_mismatch", "different sequences of collectives"
    elif len({tuple(rank.steps) for rank in members}) > 1:
        code, what = "rank_steps_differ", "different profiled steps"
    else:
        return True
    listed = ", ".join(f"rank {r.rank}: {count}" for r, count in zip(members, counts, strict=True))
    text = f"process group {group[0]}: ranks have {what} ({listed}); not compared"
    for rank, count in zip(members, counts, strict=True):
        finding = Finding(code=code, severity="warn", value=count, message=text)
        found.findings[rank.rank].append(finding)
    return False


def _rows(group: _Group, members: list[RankCollectives]) -> list[Row]:
    rows: list[Row] = []
    for index, calls in enumerate(zip(*(rank.groups[group] for rank in members), strict=True)):
        least = min(duration for _, duration in calls)
        for rank, (name, duration) in zip(members, calls, strict=True):
            times = (us(duration), us(least), us(duration - least))
            rows.append((*group, index, name, rank.rank, *times))
    return rows


def _waits(ranks: list[RankCollectives], rows: list[Row]) -> list[Row]:
    """Sums by rank. Who waits least holds the others up."""
    counts: defaultdict[int, int] = defaultdict(int)
    waits: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        rank = int(row[4] or 0)
        counts[rank] += 1
        waits[rank] += round(float(row[7] or 0) * 1000)
    compared = [rank for rank in ranks if counts[rank.rank]]
    if not compared:
        return []
    least = min(compared, key=lambda rank: (waits[rank.rank], rank.rank)).rank
    return [
        (
            rank.rank,
            counts[rank.rank],
            us(waits[rank.rank]),
            rank.window.share(waits[rank.rank]),
            least,
        )
        for rank in compared
    ]
