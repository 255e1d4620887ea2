"""Trace analyst: claims from the tables of the trace stage, and from nothing else."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfproof.claims.candidates import Candidate, exposed_comm, gpu_candidates
from perfproof.claims.candidates_host import host_candidates
from perfproof.claims.catalogs import read_catalog
from perfproof.claims.containment import Shared, containers, read_shared
from perfproof.claims.rules import TRACE_RULES
from perfproof.claims.selection import choose
from perfproof.claims.tables import RankTables
from perfproof.claims.topology import Topology, find_topology, read_manifest
from perfproof.claims.wording import Slowdown, write_claims
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.schema.base import Problem
from perfproof.schema.claims import ClaimSet, Evidence, Source
from perfproof.schema.foms import Foms
from perfproof.schema.levers import LeverCatalog
from perfproof.schema.run import Inventory
from perfproof.schema.traces import RankTrace, TraceSummary


def analyze(
    summary: TraceSummary,
    root: Path,
    inventory: Inventory,
    foms: Foms | None = None,
    catalog: LeverCatalog | None = None,
) -> ClaimSet:
    """Claims about a run's traces; `root` is the directory that table paths start from."""
    problems: list[Problem] = []
    ranks = [
        RankTables(root, rank, summary.cross_rank)
        for rank in summary.ranks
        if _is_sound(rank, problems)
    ]
    candidates, shared = _collect(ranks, inventory, problems)
    choices = choose(candidates, TRACE_RULES)
    slowdowns = {t.rank.rank: slow for t in ranks if (slow := _slowdown(t, foms))}
    return ClaimSet(
        run_id=summary.run_id,
        source=Source.TRACE,
        claims=write_claims(
            choices, Source.TRACE, TRACE_RULES, slowdowns, catalog, containers(choices, shared)
        ),
        problems=problems,
    )


def _is_sound(rank: RankTrace, problems: list[Problem]) -> bool:
    """A rank with a `bad` finding supports no claim."""
    bad = [finding for finding in rank.findings if finding.severity == "bad"]
    if rank.window_kind == "empty":
        problems.append(Problem(where=rank.file, what="no window to measure; no claims made"))
        return False
    for finding in bad:
        what = f"no claims made: {finding.code}: {finding.message}"
        problems.append(Problem(where=rank.file, what=what))
    return not bad


def _collect(
    ranks: list[RankTables], inventory: Inventory, problems: list[Problem]
) -> tuple[list[Candidate], dict[int, Shared]]:
    found: list[Candidate] = []
    shared: dict[int, Shared] = {}
    for tables in ranks:
        try:
            shared[tables.rank.rank] = read_shared(tables)
            found += [*_of_rank(tables)]
        except InputError as fault:
            problems.append(Problem(where=tables.rank.file, what=_inside(fault, tables.root)))
    try:
        found += _communication(ranks, inventory, problems)
    except InputError as fault:
        problems.append(Problem(where="tables", what=str(fault)))
    return found, shared


def _inside(fault: InputError, root: Path) -> str:
    """The fault with table paths relative to the analysis directory."""
    return str(fault).replace(f"{root}/", "")


def _of_rank(tables: RankTables) -> Iterator[Candidate]:
    if tables.rank.gpu_events:
        yield from gpu_candidates(tables)
    yield from host_candidates(tables)


def _communication(
    ranks: list[RankTables], inventory: Inventory, problems: list[Problem]
) -> list[Candidate]:
    candidates = [exposed_comm(tables) for tables in ranks if tables.rank.gpu_events]
    if not any(candidate.value > 0 for candidate in candidates):
        return []
    topology = find_topology(ranks, read_manifest(inventory))
    if topology is None:
        what = (
            "no claim on communication: neither manifest nor trace says how many ranks a node has"
        )
        problems.append(Problem(where="tables", what=what))
        return []
    found = [replace(candidate, params=topology.params()) for candidate in candidates]
    return [*found, *_waits(ranks, topology)]


def _waits(ranks: list[RankTables], topology: Topology) -> Iterator[Candidate]:
    """Waiting in collectives: one candidate, of the rank that waits most."""
    if not ranks or "collective_wait" not in ranks[0].cross_rank:
        return
    name, tables, sound = "collective_wait", ranks[0], {t.rank.rank for t in ranks}
    rows = [row for row in tables.rows(name) if int(row["rank"]) in sound]
    if len(rows) < len(tables.rows(name)) or not rows:
        return
    row = max(rows, key=lambda row: tables.number(name, row, "alone_fraction_of_window"))
    rank, straggler = int(row["rank"]), int(row["least_waiting_rank"])
    where = f"rank={rank}, column fraction_of_window; share: column alone_fraction_of_window"
    yield Candidate(
        "collective_wait_fraction",
        rank,
        tables.number(name, row, "fraction_of_window"),
        tables.number(name, row, "alone_fraction_of_window"),
        f"is waiting in collectives for other ranks; rank {straggler} waits least, so the delay "
        f"comes from rank {straggler}",
        [Evidence(file=tables.file(name), where=where)],
        {**topology.params(), "straggler": straggler},
    )


def _slowdown(tables: RankTables, foms: Foms | None) -> Slowdown | None:
    """Traced against unprofiled step time, where both are known."""
    if foms is None or foms.step_time_s is None or "steps" not in tables.rank.tables:
        return None
    rows = tables.rows("steps")
    if not rows:
        return None
    durations = [tables.number("steps", row, "duration_us") / 1e6 for row in rows]
    busy = [tables.number("steps", row, "busy_us") / 1e6 for row in rows]
    return Slowdown(statistics.median(durations), foms.step_time_s.median, statistics.median(busy))


def step(arguments: argparse.Namespace) -> Status:
    """Read tables, write claims."""
    summary = read_record(arguments.traces, TraceSummary)
    inventory = read_record(arguments.inventory, Inventory)
    foms = read_record(arguments.foms, Foms) if arguments.foms else None
    catalog = read_catalog(arguments.levers, summary.run_id, foms)
    found = analyze(summary, arguments.traces.parent.parent, inventory, foms, catalog)
    write_record(arguments.out, found)
    problems = [f"{problem.where}: {problem.what}" for problem in found.problems]
    return ok_or_partial(problems, f"{len(found.claims)} claims")


def main() -> None:
    """Command line."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--traces", type=Path, required=True, help="tables/trace_summary.json")
    arguments.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    arguments.add_argument("--foms", type=Path, help="foms.json")
    arguments.add_argument(
        "--levers", type=Path, nargs="*", default=[],
        help="lever catalogs, of which that of the run's model counts; no value: none",
    )  # fmt: skip
    arguments.add_argument("--out", type=Path, required=True, help="claims/trace.json")
    run(step, arguments.parse_args())


if __name__ == "__main__":
    main()
