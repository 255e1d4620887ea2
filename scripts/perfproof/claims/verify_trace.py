"""Verify trace claims: recompute each from the raw trace and say what came out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perfproof.claims.verifier.claim_file import verify_file
from perfproof.claims.verifier.command import verifier_command
from perfproof.claims.verifier.gpu_metrics import GPU_METRICS
from perfproof.claims.verifier.groups import group_faults
from perfproof.claims.verifier.host_metrics import HOST_METRICS
from perfproof.claims.verifier.judge import Recomputed
from perfproof.claims.verifier.ranks import topology, waiting
from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError, Scene
from perfproof.claims.verifier.share import ClaimTimes, held, total
from perfproof.claims.vocabulary import Metric
from perfproof.schema.claims import Claim, Source, VerifiedSet
from perfproof.schema.run import Inventory, Role

RECOMPUTE = {**GPU_METRICS, **HOST_METRICS}
# Metrics that rest on which events communicate and which copy.
_BY_ROLE = frozenset(
    {"exposed_comm_fraction", "exposed_memcpy_fraction", "collective_wait_fraction"}
)


def verify(claims: Path, inventory: Inventory) -> VerifiedSet:
    """Verdicts on the trace claims of a run, in the order of the claims."""
    return verify_with(claims, RunFiles(inventory))


def verify_with(claims: Path, files: RunFiles) -> VerifiedSet:
    """The same with raw files that may have been read already."""
    times = ClaimTimes(files)
    return verify_file(
        claims,
        files.inventory.run_id,
        Source.TRACE,
        lambda claim, metric: recompute(claim, metric, times),
    )


def recompute(claim: Claim, metric: Metric, times: ClaimTimes) -> Recomputed:
    """The claim's number from raw events. Raises `CannotSayError`."""
    rank, files = claim.ranks[0], times.files
    scene = files.scene(rank)
    if metric.name in _BY_ROLE:
        _check_roles(files.scenes().values() if "straggler" in claim.params else [scene])
    faults: list[str] = []
    if "group" in claim.params:
        faults += group_faults(scene, claim.params)
    if "topology" in claim.params:
        faults += _topology_faults(claim, files)
    if metric.name == "collective_wait_fraction":
        value, straggler = _wait(files, rank)
        if straggler != claim.params["straggler"]:
            faults.append(f"rank {straggler} waits least, not rank {claim.params['straggler']}")
    else:
        value = RECOMPUTE[metric.name](scene, claim.params)
    time = times.of(rank, metric.name, claim.params)
    limit = None if time is None else total(time) / scene.width

    def held_by(outer: Claim) -> float:
        return held(time or [], times.of(rank, outer.metric, outer.params) or [])

    return Recomputed(value, limit, _how(rank, scene, metric), tuple(faults), held_by)


def _check_roles(scenes: Iterable[Scene]) -> None:
    doubtful = [event for scene in scenes for event in scene.gpu if event.is_doubtful]
    if doubtful:
        name = doubtful[0].name[:40]
        raise CannotSayError(f"{name!r} is a copy or fill and says it is a collective: which?")


def _topology_faults(claim: Claim, files: RunFiles) -> list[str]:
    found = topology(files.scenes(), files.optional(Role.MANIFEST))
    said = claim.params["topology"]
    return [] if found == said else [f"communication is {found}, not {said}"]


def _wait(files: RunFiles, rank: int) -> tuple[float, int]:
    scenes = files.scenes()
    waited = {other: there.total for other, there in waiting(scenes).items()}
    if rank not in waited:
        raise CannotSayError("no collective that the rank shares with another recorded one")
    straggler = min(waited, key=lambda other: (waited[other], other))
    return waited[rank] / scenes[rank].width, straggler


def _how(rank: int, scene: Scene, metric: Metric) -> str:
    note = f"; {scene.trace.note}" if scene.trace.note else ""
    events = [f"{_host_events(scene)} CPU events"] if metric.name in HOST_METRICS else []
    events += [f"{len(scene.gpu)} GPU events"] if scene.gpu or not events else []
    return (
        f"recomputed from {' and '.join(events)} of rank {rank} in a window of "
        f"{scene.width / 1e6:.3f} ms{note}"
    )


def _host_events(scene: Scene) -> int:
    """Operators, calls and loader annotations that reach into the window."""
    trace, (low, high) = scene.trace, scene.window
    return sum(
        event.start < high and event.end > low
        for events in (trace.cpu_ops, trace.runtime, trace.loader)
        for event in events
    )


def main() -> None:
    """Command line."""
    verifier_command(__doc__ or "", Source.TRACE, verify)


if __name__ == "__main__":
    main()
