"""Telemetry analyst: claims from the telemetry summary."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from perfproof.claims.candidates import Candidate
from perfproof.claims.catalogs import read_catalog
from perfproof.claims.metrics import METRICS
from perfproof.claims.rules import TELEMETRY_RULES
from perfproof.claims.selection import choose
from perfproof.claims.topology import read_manifest
from perfproof.claims.vocabulary import ShareRule
from perfproof.claims.wording import write_claims
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.schema.base import Problem
from perfproof.schema.claims import ClaimSet, Evidence, Source
from perfproof.schema.foms import Foms
from perfproof.schema.levers import LeverCatalog
from perfproof.schema.run import Inventory
from perfproof.schema.telemetry import GpuTelemetry, TelemetrySummary

_SUMMARY = "telemetry_summary.json"
FEWEST_SAMPLES = 3


def analyze(
    summary: TelemetrySummary,
    inventory: Inventory,
    foms: Foms | None = None,
    catalog: LeverCatalog | None = None,
) -> ClaimSet:
    """Claims about the GPUs of a run. GPUs with too few samples support none.

    Where the log shows that no step became steady, telemetry shows start-up: no claims either.
    """
    capacity = _capacity(inventory)
    found: list[Candidate] = []
    problems: list[Problem] = []
    if summary.gpus and foms is not None and not foms.integrity.steady_steps:
        what = "no claims made: the log has no steady step that the samples could be about"
        problems.append(Problem(where=summary.file or _SUMMARY, what=what))
        summary = summary.model_copy(update={"gpus": []})
    for gpu in _in_use(summary.gpus):
        if gpu.samples < FEWEST_SAMPLES:
            what = f"GPU {gpu.gpu}: {gpu.samples} steady samples; expected {FEWEST_SAMPLES}"
            problems.append(Problem(where=summary.file or _SUMMARY, what=what))
        else:
            found += _candidates(gpu, capacity, summary.window_kind)
    choices = choose(found, TELEMETRY_RULES)
    return ClaimSet(
        run_id=summary.run_id,
        source=Source.TELEMETRY,
        claims=write_claims(choices, Source.TELEMETRY, TELEMETRY_RULES, {}, catalog),
        problems=problems,
    )


def _in_use(gpus: list[GpuTelemetry]) -> list[GpuTelemetry]:
    """Without GPUs that ran nothing while others did: the sampler sees all GPUs of the host."""
    busy = [gpu for gpu in gpus if gpu.utilization_mean_percent]
    return busy or gpus


def _capacity(inventory: Inventory) -> int | None:
    """Bytes of device memory as the manifest's device record says."""
    manifest = read_manifest(inventory)
    rank0 = manifest.rank0 if manifest else None
    return rank0.device.memory_bytes if rank0 else None


def _candidates(gpu: GpuTelemetry, capacity: int | None, window: str) -> Iterator[Candidate]:
    """Each known number of one GPU as a fraction, with its place and its words.

    Means over a whole run hold its start-up: they say nothing about steps and are left out.
    """
    over = f"over {gpu.samples} samples of the steady window"
    used = gpu.memory_used_max_bytes
    filled = used / capacity if used and capacity else None
    for metric, field, value, what in (
        ("gpu_utilization_mean", "utilization_mean_percent", _part(gpu.utilization_mean_percent),
         f"is the mean share of time with a kernel running, {over}"),
        ("memory_busy_mean", "memory_busy_mean_percent", _part(gpu.memory_busy_mean_percent),
         f"is the mean share of time with device memory busy, {over}"),
        ("power_throttle_fraction", "power_throttle_fraction", gpu.power_throttle_fraction,
         "are held down by the power cap"),
        ("thermal_throttle_fraction", "thermal_throttle_fraction", gpu.thermal_throttle_fraction,
         "are held down by temperature"),
        ("hbm_used_fraction", "memory_used_max_bytes", filled,
         f"of device memory is the largest use, {over}"),
    ):  # fmt: skip
        if value is not None and (window == "steps" or not metric.endswith("_mean")):
            of = "of the steady samples " if what.startswith("are") else ""
            where = f"gpus with gpu={gpu.gpu}, {field}"
            evidence = [Evidence(file=_SUMMARY, where=where)]
            complement = METRICS[metric].share is ShareRule.COMPLEMENT
            share = min(max(1 - value, 0.0), 1.0) if complement else None
            yield Candidate(metric, gpu.gpu, value, share, what, evidence, {"gpu": gpu.gpu}, of)


def _part(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


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
    arguments.add_argument("--telemetry", type=Path, required=True, help=_SUMMARY)
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
