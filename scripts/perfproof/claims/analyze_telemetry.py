"""Telemetry analyst: claims from the telemetry summary."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfproof.claims.candidates import Candidate
from perfproof.claims.catalogs import read_catalog
from perfproof.claims.rules import TELEMETRY_RULES
from perfproof.claims.selection import choose
from perfproof.claims.telemetry_candidates import (
    SUMMARY,
    in_use,
    of_gpu,
    of_hosts,
    of_links,
    outliers,
)
from perfproof.claims.topology import read_manifest
from perfproof.claims.wording import write_claims
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.schema.base import Problem
from perfproof.schema.claims import ClaimSet, Source
from perfproof.schema.foms import Foms
from perfproof.schema.levers import LeverCatalog
from perfproof.schema.run import Inventory
from perfproof.schema.telemetry import TelemetrySummary


def analyze(
    summary: TelemetrySummary,
    inventory: Inventory,
    foms: Foms | None = None,
    catalog: LeverCatalog | None = None,
) -> ClaimSet:
    """Claims about cards, links and hosts of a run. The verifier decides what few samples support.

    Where the log shows that no step became steady, telemetry shows start-up: no claims either.
    """
    capacity = _capacity(inventory)
    found: list[Candidate] = []
    problems: list[Problem] = []
    if summary.gpus and foms is not None and not foms.integrity.steady_steps:
        what = "no claims made: the log has no steady step that the samples could be about"
        problems.append(Problem(where=summary.file or SUMMARY, what=what))
        summary = summary.model_copy(update={"gpus": [], "figures": []})
    gpus = in_use(summary.gpus)
    for gpu in gpus:
        found += of_gpu(gpu, capacity, summary.window_kind)
    found += [*outliers(gpus, summary.window_kind), *of_links(summary), *of_hosts(summary)]
    choices = choose(found, TELEMETRY_RULES)
    return ClaimSet(
        run_id=summary.run_id,
        source=Source.TELEMETRY,
        claims=write_claims(choices, Source.TELEMETRY, TELEMETRY_RULES, {}, catalog),
        problems=problems,
    )


def _capacity(inventory: Inventory) -> int | None:
    """Bytes of device memory as the manifest's device record says."""
    manifest = read_manifest(inventory)
    rank0 = manifest.rank0 if manifest else None
    return rank0.device.memory_bytes if rank0 else None


def step(arguments: argparse.Namespace) -> Status:
    """Read the summary, write claims. A run without telemetry makes none."""
    summary = read_record(arguments.telemetry, TelemetrySummary)
    inventory = read_record(arguments.inventory, Inventory)
    foms = read_record(arguments.foms, Foms) if arguments.foms else None
    catalog = read_catalog(arguments.levers, summary.run_id, foms)
    found = analyze(summary, inventory, foms, catalog)
    write_record(arguments.out, found)
    problems = [f"{problem.where}: {problem.what}" for problem in found.problems]
    done = f"{len(found.claims)} claims" if summary.file else "no telemetry"
    return ok_or_partial(problems, done)


def main() -> None:
    """Command line."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--telemetry", type=Path, required=True, help=SUMMARY)
    arguments.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    arguments.add_argument("--foms", type=Path, help="foms.json")
    arguments.add_argument(
        "--levers", type=Path, nargs="*", default=[],
        help="lever catalogs, of which that of the run's model counts; no value: none",
    )  # fmt: skip
    arguments.add_argument("--out", type=Path, required=True, help="claims/telemetry.json")
    run(step, arguments.parse_args())


if __name__ == "__main__":
    main()
