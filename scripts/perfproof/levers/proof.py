"""Did a lever take effect? What its catalog entry says must be seen, held to what the run shows.

Settings come from rank 0's report, which reads live objects after the first step; kernel names from
the trace. `seen` is None where the run does not say, which is no proof.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from perfproof.schema.levers import EffectProof, Lever
from perfproof.schema.loop import ProofFinding
from perfproof.schema.run import Manifest, RankReport


def findings(
    lever: Lever,
    manifest: Manifest,
    kernels: Collection[str] | None,
    against: Manifest | None = None,
) -> list[ProofFinding]:
    """One finding for each thing that the lever's proof asks for; none without a proof.

    `kernels` are the names in the run's trace, None without a trace. Kernels are asked for on GPUs
    only. `against` is the run that it is compared with, for settings that must differ from it.
    """
    wanted = lever.effect_proof
    if wanted is None:
        return []
    if manifest.rank0 is None:
        what = "rank 0 left no report"
        return [ProofFinding(lever=lever.id, seen=None, what=what)]
    found = [*_settings(wanted, manifest.rank0), *_kernels(wanted, manifest.rank0, kernels)]
    if against is not None and lever.id not in against.resolved.levers:
        found += _changes(wanted, manifest.rank0, against.rank0)
    return [ProofFinding(lever=lever.id, seen=seen, what=what) for seen, what in found]


Found = tuple[bool | None, str]


def _settings(wanted: EffectProof, rank0: RankReport) -> Iterator[Found]:
    if wanted.dtype is not None:
        yield _equal("dtype", wanted.dtype, rank0.dtype)
    if wanted.num_workers is not None:
        yield _equal("num_workers", str(wanted.num_workers), str(rank0.num_workers))
    if wanted.batch_size is not None:
        yield _equal("batch_size", str(wanted.batch_size), rank0.effects.get("batch_size"))
    for name, value in sorted(wanted.effects.items()):
        yield _equal(name, value, rank0.effects.get(name))
    for name, value in sorted(wanted.env.items()):
        yield _equal(f"variable {name}", value, rank0.env.get(name))


def _equal(name: str, wanted: str, found: str | None) -> Found:
    seen = None if found in (None, "unknown") else found == wanted
    return seen, f"{name}: {wanted} wanted, {'not reported' if found is None else found} found"


def _kernels(
    wanted: EffectProof, rank0: RankReport, kernels: Collection[str] | None
) -> Iterator[Found]:
    if rank0.device.kind == "cpu":
        return
    for pattern, present in ((wanted.kernel, True), (wanted.no_kernel, False)):
        if pattern is None:
            continue
        asked = f"{'a' if present else 'no'} kernel like '{pattern}'"
        if not kernels:
            yield None, f"{asked} wanted, no kernel recorded"
            continue
        hit = next((name for name in sorted(kernels) if re.search(pattern, name)), None)
        among = f"none among {len(kernels)}" if hit is None else hit[:80]
        yield (hit is not None) is present, f"{asked} wanted, {among} found"


def _changes(wanted: EffectProof, here: RankReport, there: RankReport | None) -> Iterator[Found]:
    """Settings that must differ between the runs, where both report them."""
    others = there.effects if there else {}
    both = [name for name in wanted.changes if name in here.effects and name in others]
    if not both:
        return
    changed = [name for name in both if here.effects[name] != others[name]]
    name = (changed or both)[0]
    what = f"{name}: {others[name]} without it, {here.effects[name]} with it"
    yield bool(changed), what if changed else f"no change in {', '.join(both)}; {what}"
