"""Trace step: kineto traces of a run to tables and `tables/trace_summary.json`.

`python -m perfproof.traces.tables --inventory inventory.json --out-dir <analysis directory>`
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfproof.core import step
from perfproof.core.files import read_record, write_record
from perfproof.schema.base import Problem
from perfproof.schema.run import Inventory, Role
from perfproof.schema.traces import Finding, RankTrace, TraceQuality, TraceSummary
from perfproof.traces.clock_offset import clock_offsets
from perfproof.traces.crossrank import RankCollectives, skew
from perfproof.traces.csvfile import write_csv, write_table
from perfproof.traces.quality_record import quality_of
from perfproof.traces.rank_work import RankWork, all_ranks, unexpected

SUMMARY = Path("tables") / "trace_summary.json"
QUALITY = Path("tables") / "trace_quality.json"


@dataclass
class _Work:
    """What has been done so far, over the ranks of a run."""

    ranks: list[RankTrace] = field(default_factory=list)
    collectives: list[RankCollectives] = field(default_factory=list)
    quality: dict[int, dict[str, Any]] = field(default_factory=dict)  # numbers by rank
    problems: list[Problem] = field(default_factory=list)


def analyse(inventory: Inventory, root: Path, out: Path, jobs: int = 1) -> TraceSummary:
    """Tables of all traces of a run, written under `out`/tables; a bad trace costs only itself.

    `jobs` traces are read at a time, each in a process of its own; the result is the same.
    """
    return analyse_all(inventory, root, out, jobs)[0]


def analyse_all(
    inventory: Inventory, root: Path, out: Path, jobs: int
) -> tuple[TraceSummary, TraceQuality]:
    """The same with the record of the traces' quality."""
    work = _Work()
    for found in all_ranks(inventory.of(Role.TRACE), root, jobs):
        if isinstance(found, Problem):
            work.problems.append(found)
            continue
        try:
            _take(found, out, work)
        except OSError as fault:
            work.problems.append(unexpected(found.record.file, fault))
    compared = skew(work.collectives)
    _add_findings(work.ranks, compared.findings)
    work.ranks.sort(key=lambda rank: rank.rank)
    summary = TraceSummary(
        run_id=inventory.run_id,
        ranks=work.ranks,
        cross_rank={
            name: write_table(out, f"tables/{name}.csv", table)
            for name, table in compared.tables.items()
        },
        problems=work.problems,
    )
    return summary, _quality(work, inventory.run_id)


def _quality(work: _Work, run_id: str) -> TraceQuality:
    present = {rank.rank for rank in work.ranks}
    offsets = clock_offsets(work.collectives, {r.rank: r.base_time_ns for r in work.ranks})
    return TraceQuality(
        run_id=run_id,
        ranks=[
            quality_of(work.quality[rank.rank], rank, present, offsets.get(rank.rank))
            for rank in work.ranks
        ],
        problems=work.problems,
    )


def _take(found: RankWork, out: Path, work: _Work) -> None:
    """Write the tables of one rank; of two traces that claim a rank the first counts."""
    record = found.record
    if taken := [other.file for other in work.ranks if other.rank == record.rank]:
        what = f"rank {record.rank}, as in {taken[0]}; expected one trace for a rank"
        work.problems.append(Problem(where=record.file, what=what))
        return
    if found.lost:
        work.problems.append(Problem(where=record.file, what=found.lost))
    record.tables.update(
        (name, write_csv(out, f"tables/rank-{record.rank}/{name}.csv", text, rows))
        for name, (text, rows) in found.texts.items()
    )
    work.ranks.append(record)
    work.collectives.append(found.collectives)
    work.quality[record.rank] = found.numbers


def _add_findings(ranks: list[RankTrace], compared: dict[int, list[Finding]]) -> None:
    """Findings that only all ranks together show."""
    present = {rank.rank for rank in ranks}
    for rank in ranks:
        world = rank.world_size or 0
        absent = world - sum(0 <= other < world for other in present)
        if absent:
            text = f"{absent} of {rank.world_size} ranks have no readable trace"
            rank.findings.append(
                Finding(code="missing_ranks", severity="warn", value=absent, message=text)
            )
        rank.findings.extend(compared.get(rank.rank, []))


def run_step(arguments: argparse.Namespace) -> step.Status:
    """Read the inventory, write tables and summary."""
    inventory = read_record(arguments.inventory, Inventory)
    summary, quality = analyse_all(
        inventory, Path(inventory.root), arguments.out_dir, arguments.jobs
    )
    write_record(arguments.out_dir / QUALITY, quality)
    write_record(arguments.out_dir / SUMMARY, summary)
    if not inventory.of(Role.TRACE):
        return step.Status("partial", "no trace")
    problems = [f"{problem.where}: {problem.what}" for problem in summary.problems]
    return step.ok_or_partial(problems, f"tables of {len(summary.ranks)} ranks")


def main() -> None:
    """Command line."""
    parser = step.parser("Kineto traces of a run to tables.")
    parser.add_argument("--inventory", type=Path, required=True, help="inventory.json of the run")
    parser.add_argument("--out-dir", type=Path, required=True, help="analysis directory")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="traces that are read at a time"
    )
    step.run(run_step, parser.parse_args())


if __name__ == "__main__":
    main()
