"""Step: the run in an inventory to `foms.json`.

`python -m perfproof.foms.extract --inventory inventory.json [--traces trace_summary.json]
[--telemetry telemetry_summary.json] --out …`
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfproof.core import step
from perfproof.core.files import read_record, write_record
from perfproof.foms.assemble import foms_of
from perfproof.schema.foms import Foms
from perfproof.schema.run import Inventory
from perfproof.schema.telemetry import TelemetrySummary
from perfproof.schema.traces import TraceSummary


def extract(arguments: argparse.Namespace) -> step.Status:
    """Write `foms.json`; partial when a source has a fault or the main figure is missing."""
    inventory = read_record(arguments.inventory, Inventory)
    traces = read_record(arguments.traces, TraceSummary) if arguments.traces else None
    telemetry = read_record(arguments.telemetry, TelemetrySummary) if arguments.telemetry else None
    foms = foms_of(inventory, traces, telemetry)
    write_record(arguments.out, foms)
    lines = [f"{problem.where}: {problem.what}" for problem in foms.problems]
    for line in lines:
        print(line)
    return step.ok_or_partial(lines, _summary(foms))


def _summary(foms: Foms) -> str:
    if foms.primary.value is None:
        return "no throughput"
    steady = foms.integrity.steady_steps
    return f"{foms.primary.value:.6g} samples/s ({foms.primary.method}, {steady} steady steps)"


def main() -> None:
    """Command line."""
    parser = step.parser("Figures of merit from a run's logs")
    parser.add_argument("--inventory", type=Path, required=True, help="inventory.json of the run")
    parser.add_argument("--traces", type=Path, help="trace_summary.json, if the run was traced")
    parser.add_argument("--telemetry", type=Path, help="telemetry_summary.json")
    parser.add_argument("--out", type=Path, required=True, help="foms.json to write")
    step.run(extract, parser.parse_args())


if __name__ == "__main__":
    main()
