"""`collective_skew` and `collective_wait`: who waits for whom.

In a collective all ranks end together; one that arrives early waits in it. So the rank with the
shortest n-th collective of a process group came last, and the others' excess is their wait. Only
durations are compared: clocks of different hosts need not agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from perfproof.schema.traces import Finding
from perfproof.traces.context import Context
from perfproof.traces.csvfile import Row, Rows, us
from perfproof.traces.intervals import Intervals, clip, difference_length, join, union
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
WAIT_COLUMNS = (
    "rank",
    "collectives",
    "wait_us",
    "fraction_of_window",
    "alone_us",
    "alone_fraction_of_window",
    "least_waiting_rank",
)

_Group = tuple[str, str]  # process group name, its ranks


class Collective(NamedTuple):
    """One collective of one rank, in ns of its clock."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class RankCollectives:
    """One rank's collectives of the window, by process group, in order of start."""

    rank: int
    window: Window
    steps: list[int]
    groups: dict[_Group, list[Collective]]
    other_work: Intervals  # where GPU events of the window run that are no collectives


@dataclass
class Skew:
    """Both tables, and what kept collectives from being matched, by rank."""

    tables: dict[str, Rows] = field(default_factory=dict)
    findings: dict[int, list[Finding]] = field(default_factory=lambda: defaultdict(list))


def rank_collectives(context: Context) -> RankCollectives:
    """What cross-rank tables need of one rank."""
    gpu = context.gpu
    groups: defaultdict[_Group, list[Collective]] = defaultdict(list)
    for index in np.flatnonzero(context.window.inside & context.comm).tolist():
        known = gpu.collective.get(index)
        name = known.name if known else context.name(int(gpu.name[index])).split("(")[0]
        group = (known and known.process_group) or "all"
        ranks = (known and known.ranks) or ""
        one = Collective(name, int(gpu.start[index]), int(gpu.end[index]))
        groups[group, ranks].append(one)
    busy = context.window_busy
    others = join(busy.compute, busy.memcpy)
    numbers = context.steps.number
    return RankCollectives(context.rank, context.window, numbers, dict(groups), others)


def skew(ranks: Sequence[RankCollectives]) -> Skew:
    """Match collectives over ranks; no tables when fewer than two ranks have any."""
    found = Skew()
    taking = [rank for rank in ranks if rank.groups]
    if len(taking) < 2:
        return found
    rows: list[Row] = []
    waits: dict[int, _Waits] = defaultdict(_Waits)
    for group in sorted({group for rank in taking for group in rank.groups}):
        members = [rank for rank in taking if group in rank.groups]
        if len(members) > 1 and _comparable(group, members, found):
            rows += _rows(group, members, waits)
    found.tables = {
        "collective_skew": Rows(SKEW_COLUMNS, rows),
        "collective_wait": Rows(WAIT_COLUMNS, _wait_rows(taking, waits)),
    }
    return found


def _comparable(group: _Group, members: list[RankCollectives], found: Skew) -> bool:
    """Whether the n-th collective is the same one on every rank, as far as can be told."""
    names = [[one.name for one in rank.groups[group]] for rank in members]
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


@dataclass
class _Waits:
    """Compared collectives of one rank, each cut in two where the last rank came."""

    groups: set[_Group] = field(default_factory=set)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    moving: list[tuple[int, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Sum of the waits, in ns."""
        return sum(end - start for start, end in self.waiting)


def _rows(group: _Group, members: list[RankCollectives], waits: dict[int, _Waits]) -> list[Row]:
    """Rows of the skew table; adds what each rank waits to `waits`."""
    rows: list[Row] = []
    for rank in members:
        waits[rank.rank].groups.add(group)
    for index, calls in enumerate(zip(*(rank.groups[group] for rank in members), strict=True)):
        least = min(one.end - one.start for one in calls)
        for rank, one in zip(members, calls, strict=True):
            last_came = one.end - least
            waits[rank.rank].waiting.append((one.start, last_came))
            waits[rank.rank].moving.append((last_came, one.end))
            times = (us(one.end - one.start), us(least), us(last_came - one.start))
            rows.append((*group, index, one.name, rank.rank, *times))
    return rows


def _wait_rows(ranks: list[RankCollectives], waits: dict[int, _Waits]) -> list[Row]:
    """Sums by rank. Who waits least holds the others up."""
    compared = [rank for rank in ranks if rank.rank in waits]
    if not compared:
        return []
    least = min(compared, key=lambda rank: (waits[rank.rank].total, rank.rank)).rank
    rows: list[Row] = []
    for rank in compared:
        mine, share = waits[rank.rank], rank.window.share
        alone = _alone(rank, mine)
        times = (us(mine.total), share(mine.total), us(alone), share(alone))
        rows.append((rank.rank, len(mine.waiting), *times, least))
    return rows


def _alone(rank: RankCollectives, waits: _Waits) -> int:
    """Time in ns in which the rank's GPU does nothing but wait in compared collectives."""
    rest = [
        (one.start, one.end)
        for group, collectives in rank.groups.items()
        if group not in waits.groups
        for one in collectives
    ]
    others = join(rank.other_work, _flat(waits.moving + rest))
    waiting = clip(_flat(waits.waiting), rank.window.start, rank.window.end)
    return difference_length(waiting, others)


def _flat(pairs: list[tuple[int, int]]) -> Intervals:
    return union(*np.array(pairs, np.int64).reshape(-1, 2).T)
