"""TraceLens step: choose the back end, run TraceLens where it is used, hold it against our tables.

`python -m perfproof.tracelens.run --inventory inventory.json --traces tables/trace_summary.json
--backend auto --out tracelens/backend.json`
"""

from __future__ import annotations

import argparse
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfproof.core import step
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Inventory
from perfproof.schema.tracelens import RankBackend, TraceBackend
from perfproof.schema.traces import RankTrace, Table, TraceSummary
from perfproof.tracelens.compare import (
    LINKED,
    TIMELINE,
    Timeline,
    held_against,
    read_timeline,
    without_numbers,
)
from perfproof.tracelens.find import Choice, TraceLens, choose
from perfproof.tracelens.reports import report_on_collectives, report_on_rank

FOLDER = Path("tracelens")
TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Work:
    """What all reports of a run share. `root` holds the traces, `out` is the analysis directory."""

    found: TraceLens
    root: Path
    out: Path
    timeout_s: float


def held(
    summary: TraceSummary,
    root: Path,
    out: Path,
    asked: Literal["auto", "tracelens", "builtin"],
    choice: Choice,
    timeout_s: float = TIMEOUT_S,
    jobs: int = 1,
) -> TraceBackend:
    """The record; TraceLens's CSV files go to `out`/tracelens. A bad trace costs only itself."""
    problems: list[Problem] = []
    ranks: list[RankBackend] = []
    tables: dict[str, Table] = {}
    note = ""
    shutil.rmtree(out / FOLDER, ignore_errors=True)
    if choice.found is not None:
        work = Work(choice.found, root, out, timeout_s)
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            ranks = list(pool.map(lambda rank: _of_rank(work, rank), summary.ranks))
        problems += [Problem(where=r.file, what=r.explanation) for r in ranks if _failed(r)]
        tables, note = _collectives(work, summary.ranks, problems)
    version = choice.found.version if choice.found else None
    return TraceBackend(
        run_id=summary.run_id,
        asked=asked,
        used=choice.used,
        why=choice.why,
        version=version,
        ranks=ranks,
        collectives=tables,
        collectives_note=note,
        problems=problems,
        reasons={} if version else {"version": Reason.NOT_APPLICABLE},
    )


_NO_GPU = "No GPU events: TraceLens reports on these only."


def _failed(rank: RankBackend) -> bool:
    return rank.agreement == "none" and rank.explanation != _NO_GPU


def _of_rank(work: Work, rank: RankTrace) -> RankBackend:
    if not rank.gpu_events:
        return without_numbers(rank, {}, None, _NO_GPU)
    ours: Timeline = {}
    linked: Timeline | None = None
    try:
        ours = read_timeline(work.out, rank.tables[TIMELINE])
        # Empty where the file has no arrows.
        linked = read_timeline(work.out, rank.tables[LINKED]) if LINKED in rank.tables else None
        to = FOLDER / f"rank-{rank.rank}"
        tables = report_on_rank(work.found, work.root / rank.file, to, work.out, work.timeout_s)
        theirs = read_timeline(work.out, tables[TIMELINE])
    except (InputError, OSError) as fault:
        return without_numbers(rank, ours, linked or None, _told(fault))
    if not theirs:
        return without_numbers(rank, ours, linked or None, "TraceLens wrote an empty timeline.")
    return held_against(rank, ours, linked or None, theirs, tables)


def _collectives(
    work: Work, ranks: list[RankTrace], problems: list[Problem]
) -> tuple[dict[str, Table], str]:
    """TraceLens's report over all ranks, where it can make one."""
    if len(ranks) < 2:
        return {}, ""
    numbers = [rank.rank for rank in ranks]
    if numbers != list(range(len(ranks))):
        return {}, f"TraceLens wants ranks 0 to n - 1; there are {_short(numbers)}."
    traces = {rank.rank: work.root / rank.file for rank in ranks}
    # Read one after the other, so the limit is that of as many reports.
    limit = work.timeout_s * len(ranks)
    try:
        tables = report_on_collectives(work.found, traces, FOLDER / "all-ranks", work.out, limit)
    except (InputError, OSError) as fault:
        problems.append(Problem(where="traces of all ranks", what=_told(fault)))
        return {}, f"TraceLens's report over all ranks failed: {_told(fault)}."
    empty = sorted(name for name, table in tables.items() if not table.rows)
    return tables, f"Without rows: {', '.join(empty)}." if empty else ""


def _short(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")


def _told(fault: InputError | OSError) -> str:
    if isinstance(fault, InputError):
        return f"{fault.found}; expected {fault.expected}"
    return str(fault.strerror)


def run_step(arguments: argparse.Namespace) -> step.Status:
    """Choose, run, compare, write."""
    choice = choose(arguments.backend)
    summary = read_record(arguments.traces, TraceSummary)
    root = Path(read_record(arguments.inventory, Inventory).root)
    out = arguments.traces.parent.parent
    record = held(
        summary, root, out, arguments.backend, choice, arguments.timeout_s, arguments.jobs
    )
    write_record(arguments.out, record)
    return step.ok_or_partial(
        [f"{problem.where}: {problem.what}" for problem in record.problems],
        f"{record.used} ({record.why})",
    )


def main() -> None:
    """Command line."""
    parser = step.parser(__doc__ or "")
    parser.add_argument("--inventory", type=Path, required=True, help="inventory.json of the run")
    parser.add_argument("--traces", type=Path, required=True, help="tables/trace_summary.json")
    parser.add_argument(
        "--backend", choices=("auto", "tracelens", "builtin"), default="auto",
        help="auto: TraceLens where AMD's is installed",
    )  # fmt: skip
    parser.add_argument("--timeout-s", type=float, default=TIMEOUT_S, help="limit of one report")
    parser.add_argument("--jobs", type=int, default=1, help="reports that are made at a time")
    parser.add_argument("--out", type=Path, required=True, help="tracelens/backend.json")
    step.run(run_step, parser.parse_args())


if __name__ == "__main__":
    main()
