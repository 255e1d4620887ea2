"""Verify trace claims: recompute each from the raw trace and say what came out."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfproof.claims.verifier.claim_file import verdict_status, verify_file
from perfproof.claims.verifier.gpu_metrics import GPU_METRICS
from perfproof.claims.verifier.host_metrics import HOST_METRICS, loader_idle
from perfproof.claims.verifier.judge import Recomputed
from perfproof.claims.verifier.ranks import topology, waits
from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError, Scene
from perfproof.claims.vocabulary import Metric
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.schema.claims import Claim, Source, VerifiedSet
from perfproof.schema.run import Inventory, Role

RECOMPUTE = {**GPU_METRICS, **HOST_METRICS}


def verify(claims: Path, inventory: Inventory) -> VerifiedSet:
    """Verdicts on the trace claims of a run, in the order of the claims."""
    return verify_with(claims, RunFiles(inventory))


def verify_with(claims: Path, files: RunFiles) -> VerifiedSet:
    """The same with raw files that may have been read already."""
    return verify_file(
        claims,
        files.inventory.run_id,
        Source.TRACE,
        lambda claim, metric: recompute(claim, metric, files),
    )


def recompute(claim: Claim, metric: Metric, files: RunFiles) -> Recomputed:
    """The claim's number from raw events. Raises `CannotSayError`."""
    rank = claim.ranks[0]
    scene = files.scene(rank)
    faults: list[str] = []
    if "topology" in claim.params:
        faults += _topology_faults(claim, files)
    if metric.name == "collective_wait_fraction":
        value, straggler = _wait(files, rank)
        if straggler != claim.params["straggler"]:
            faults.append(f"rank {straggler} waits least, not rank {claim.params['straggler']}")
    else:
        value = RECOMPUTE[metric.name](scene, claim.params)
    idle = scene.idle / scene.width
    return Recomputed(value, idle, loader_idle(scene), _how(rank, scene), tuple(faults))


def _topology_faults(claim: Claim, files: RunFiles) -> list[str]:
    found = topology(files.scenes(), files.optional(Role.MANIFEST))
    said = claim.params["topology"]
    return [] if found == said else [f"communication is {found}, not {said}"]


def _wait(files: RunFiles, rank: int) -> tuple[float, int]:
    scenes = files.scenes()
    total = waits(scenes)
    if rank not in total:
        raise CannotSayError("no collective that the rank shares with another recorded one")
    straggler = min(total, key=lambda other: (total[other], other))
    return total[rank] / scenes[rank].width, straggler


def _how(rank: int, scene: Scene) -> str:
    note = f"; {scene.trace.note}" if scene.trace.note else ""
    return (
        f"recomputed from {len(scene.gpu)} GPU events of rank {rank} in a window of "
        f"{scene.width / 1e6:.3f} ms{note}"
    )


def step(arguments: argparse.Namespace) -> Status:
    """Read claims and inventory, write the verdicts."""
    found = verify(arguments.claims, read_record(arguments.inventory, Inventory))
    write_record(arguments.out, found)
    return verdict_status(found)


def main() -> None:
    """Command line."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--claims", type=Path, required=True, help="claims/trace.json")
    arguments.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    arguments.add_argument("--out", type=Path, required=True, help="verified/trace.json")
    run(step, arguments.parse_args())


if __name__ == "__main__":
    main()
