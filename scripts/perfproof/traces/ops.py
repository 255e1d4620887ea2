"""`ops_summary` and `ops_summary_by_category`: GPU time by the CPU operation that launched it.

A launcher is the innermost operation around the launching call; the call itself where no
operation is open; the GPU event itself where no launch is recorded. Communication is left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from perfproof.traces import groups
from perfproof.traces.calls import call_category
from perfproof.traces.categories import category
from perfproof.traces.context import Context
from perfproof.traces.csvfile import Row, Rows, largest_first
from perfproof.traces.grouping import Groups
from perfproof.traces.intervals import Ints, union_length_by

NO_LAUNCH = "(no launch recorded)"
SUMMARY_COLUMNS = (
    "name",
    "total_direct_kernel_time_sum",
    "total_subtree_kernel_time_sum",
    "total_direct_kernel_time_ms",
    "total_subtree_kernel_time_ms",
    "Count",
    "Categories",
    "Percentage (%)",
    "Cumulative Percentage (%)",
)
CATEGORY_COLUMNS = (
    "op category",
    "Count",
    "total_direct_kernel_time_ms",
    "Percentage (%)",
    "Cumulative Percentage (%)",
)
# TorchScript's wrapper around a fused operation: the operation around it is the launcher.
_PASS_THROUGH = "execute"


@dataclass(frozen=True)
class Launchers:
    """One entry per launcher: covered GPU time of its own and of all operations inside it."""

    name: list[str]
    category: list[str]
    direct: list[int]
    subtree: list[int]


def launchers(context: Context) -> Launchers:
    """All launchers with their GPU time in ns."""
    parents = context.links.tree.parents()
    events = np.flatnonzero(~context.comm)
    launcher = _launcher_ids(context, parents)
    keyed = Groups(launcher[events])
    ids, first = keyed.keys[0], events[keyed.first]
    gpu = context.gpu
    direct = union_length_by(keyed.of_row, gpu.start[events], gpu.end[events], len(keyed))
    named = [
        _name_and_category(context, one, groups.NAMES[group])
        for one, group in zip(ids.tolist(), context.group[first].tolist(), strict=True)
    ]
    return Launchers(
        name=[name for name, _ in named],
        category=[kind for _, kind in named],
        direct=direct.tolist(),
        subtree=_subtree(context, ids, launcher, parents).tolist(),
    )


def _launcher_ids(context: Context, parents: Ints) -> Ints:
    """Operations keep their index; calls and unlinked events follow behind."""
    links, ops, calls = context.links, len(context.trace.ops), len(context.trace.calls)
    op = _skip(context, links.op, parents)
    alone = ops + calls + np.arange(len(context.gpu))
    return np.where(op >= 0, op, np.where(links.linked, ops + links.call, alone))


def _skip(context: Context, op: Ints, parents: Ints) -> Ints:
    names = context.trace.names
    if _PASS_THROUGH not in names or not len(context.trace.ops):
        return op
    wrapper = context.trace.ops.name == names.index(_PASS_THROUGH)
    while (inner := (op >= 0) & wrapper[op]).any():
        op = np.where(inner, parents[op], op)
    return op


def _name_and_category(context: Context, launcher: int, group: str) -> tuple[str, str]:
    """Name of a launcher, and its category given the group of its first GPU event."""
    trace = context.trace
    if launcher < len(trace.ops):
        op = context.name(int(trace.ops.name[launcher]))
        return op, category(op, group)
    at = launcher - len(trace.ops)
    if at < len(trace.calls):
        call = context.name(int(trace.calls.name[at]))
        return call, call_category(call)
    return NO_LAUNCH, "unlinked"


def _subtree(context: Context, ids: Ints, launcher: Ints, parents: Ints) -> Ints:
    """Covered time of all GPU events launched inside each launcher, communication included."""
    gpu = context.gpu
    place = np.full(max(int(launcher.max(initial=-1)), parents.size - 1) + 1, -1, np.int64)
    place[ids] = np.arange(ids.size)
    owner: list[Ints] = []
    event: list[Ints] = []
    at, here = launcher.copy(), np.arange(len(gpu))
    while at.size:
        known = place[at] >= 0
        owner.append(place[at[known]])
        event.append(here[known])
        inside = at < parents.size
        at, here = parents[at[inside]], here[inside]
        at, here = at[at >= 0], here[at >= 0]
    if not owner:
        return np.zeros(ids.size, np.int64)
    rows = np.concatenate(event)
    return union_length_by(np.concatenate(owner), gpu.start[rows], gpu.end[rows], ids.size)


def ops_tables(context: Context) -> dict[str, Rows]:
    """Both tables."""
    found = launchers(context)
    return {
        "ops_summary": _by_name(found),
        "ops_summary_by_category": _by_category(found),
    }


def _by_name(found: Launchers) -> Rows:
    members: defaultdict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(found.name):
        members[name].append(index)
    rows = []
    for name, at in members.items():
        direct, subtree = (sum(time[i] for i in at) for time in (found.direct, found.subtree))
        kinds = sorted({found.category[i] for i in at})
        times = (direct / 1e3, subtree / 1e3, direct / 1e6, subtree / 1e6)
        rows.append((name, *times, len(at), str(kinds)))
    return Rows(SUMMARY_COLUMNS, _with_percent(rows, 3))


def _by_category(found: Launchers) -> Rows:
    times: defaultdict[str, list[int]] = defaultdict(list)
    for name, direct in zip(found.category, found.direct, strict=True):
        times[name].append(direct)
    rows = [(name, len(each), sum(each) / 1e6) for name, each in times.items()]
    return Rows(CATEGORY_COLUMNS, _with_percent(rows, 2))


def _with_percent(rows: Sequence[Row], column: int) -> list[Row]:
    """Largest first, with the share of `column` and its running sum in percent."""
    ordered = largest_first(rows, column, 0)
    values = [float(row[column] or 0) for row in ordered]
    total = math.fsum(values) or 1.0  # `sum` of floats depends on the version of Python
    percent = [100 * value / total for value in values]
    return [
        (*row, *shares) for row, *shares in zip(ordered, percent, accumulate(percent), strict=True)
    ]
