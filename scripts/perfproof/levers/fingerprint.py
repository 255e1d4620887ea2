"""The conditions of a run, as far as its manifest tells them: what verdicts are bound to."""

from __future__ import annotations

from typing import Literal, cast, get_args

from pydantic import TypeAdapter, ValidationError

from perfproof.schema.config import Dtype, Parallel, ResolvedRecipe, Workload
from perfproof.schema.levers import Fingerprint, Version
from perfproof.schema.run import Device, Manifest, RankReport
from perfproof.training.upstream.orbit2 import layout

Vendor = Literal["amd", "nvidia", "none"]
CPU = "cpu"
_VERSION: TypeAdapter[str] = TypeAdapter(Version)


def fingerprint(manifest: Manifest) -> Fingerprint:
    """The conditions of a run, as rank 0 realised them; null is what the run does not say."""
    asked, rank0 = manifest.resolved, manifest.rank0
    known = before(asked)
    if rank0 is None:
        return known.model_copy(update={"dtype": None, "batch_size": None})
    versions = rank0.versions
    return known.model_copy(
        update={
            "arch": _arch(rank0.device),
            "dtype": _dtype(rank0.dtype),
            "torch": _version(versions.torch),
            "rocm": _version(versions.rocm),
            "cuda": _version(versions.cuda),
            "driver": _version(versions.driver),
            "ranks": rank0.world_size,
            "batch_size": _batch_size(rank0),
        }
    )


def before(resolved: ResolvedRecipe) -> Fingerprint:
    """What is known of a run before it started: architecture and versions are not."""
    training, sizes = resolved.recipe.training, resolved.recipe.parallel
    return Fingerprint(
        model=resolved.recipe.model,
        workload=resolved.workload,
        dtype=training.dtype,
        nodes=resolved.nodes,
        ranks=resolved.ranks,
        fsdp=_fsdp(resolved, sizes),
        tensor_par=sizes.tensor_par,
        batch_size=training.batch_size,
    )


def _fsdp(resolved: ResolvedRecipe, sizes: Parallel) -> int | None:
    """As given; else ORBIT-2's derived size, and 1 where every rank has the whole model."""
    if sizes.fsdp is not None:
        return sizes.fsdp
    if resolved.workload is Workload.EMBEDDED:
        return 1
    if resolved.recipe.model != "orbit2":
        return None
    return layout(sizes, resolved.ranks, "parallel")["fsdp"]


def _arch(device: Device) -> str | None:
    return CPU if device.kind == "cpu" else device.arch


def _dtype(name: str) -> Dtype | None:
    return cast(Dtype, name) if name in get_args(Dtype) else None


def _version(text: str | None) -> str | None:
    try:
        return _VERSION.validate_python(text)
    except ValidationError:
        return None


def _batch_size(rank0: RankReport) -> int | None:
    found = rank0.effects.get("batch_size", "")
    return int(found) if found.isdecimal() and int(found) > 0 else None
