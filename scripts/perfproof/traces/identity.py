"""Whose trace a file is: one rank, one device, one process. Doubt is an error, never a guess."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import numpy as np

from perfproof.core.errors import InputError
from perfproof.core.files import digest_file
from perfproof.schema.run import Artifact
from perfproof.traces.decode import EXPECTED
from perfproof.traces.model import Trace

# `rank0`, `rank-1`, `rank_3of8`; not the `rank` inside another word.
_SHARED = 0.05  # of the calls; none in traces of one rank, about half where two were merged
_RANK = re.compile(r"(?<![a-z])rank[-_]?(\d+)", re.IGNORECASE)


def file_rank(path: str) -> int | None:
    """The rank that a file's name gives, if it gives one."""
    match = _RANK.search(PurePosixPath(path).name)
    return int(match[1]) if match else None


def rank_of(trace: Trace, artifact: Artifact, only: bool) -> int:
    """The rank of a trace: what the file says, else the inventory, else its name.

    `only`: it is the run's single trace; then one that names no rank is rank 0. Raises
    `InputError` where two sources disagree, or where none says.
    """
    sources = {
        "distributedInfo": trace.meta.rank,
        "the inventory": artifact.rank,
        "the file name": file_rank(artifact.path),
    }
    said = {source: rank for source, rank in sources.items() if rank is not None}
    if len(set(said.values())) > 1:
        found = ", ".join(f"{source} says rank {rank}" for source, rank in said.items())
        raise InputError(artifact.path, found, "one rank from all sources", "distributedInfo.rank")
    if said:
        return next(iter(said.values()))
    if only:
        return 0
    raise InputError(
        artifact.path,
        "no rank in distributedInfo, the inventory or the file name",
        "a rank, since the run has several traces",
        "distributedInfo.rank",
    )


def is_named(trace: Trace, artifact: Artifact) -> bool:
    """Whether anything says which rank a trace is of."""
    sources = (trace.meta.rank, artifact.rank, file_rank(artifact.path))
    return any(rank is not None for rank in sources)


def check_unchanged(artifact: Artifact, root: Path) -> None:
    """Refuse a file whose digest is not the inventory's: other steps read other bytes."""
    try:
        digest = digest_file(root / artifact.path)
    except OSError as fault:
        raise InputError(artifact.path, fault.strerror or "unreadable", EXPECTED) from None
    if digest != artifact.blake3:
        raise InputError(
            artifact.path,
            "changed since the inventory was taken",
            f"BLAKE3 {artifact.blake3[:16]}, not {digest[:16]}",
        )


def check_single(trace: Trace) -> None:
    """Refuse files that hold several devices or several processes: their times would pool.

    Ranks merged under one process and one device give themselves away by their correlations, which
    no two calls of one process share. `perfproof.traces.split` takes such files apart.
    """
    devices = sorted({device for device in np.unique(trace.gpu.device).tolist() if device >= 0})
    if len(devices) > 1:
        found = f"GPU events of devices {', '.join(map(str, devices))}"
        raise InputError(trace.file, found, "one device in a file", "args.device")
    if len(trace.gpu_processes) > 1:
        found = f"GPU events of processes {', '.join(trace.gpu_processes)}"
        raise InputError(trace.file, found, "one device in a file", "pid")
    if len(trace.processes) > 1:
        found = f"CPU events of processes {', '.join(trace.processes)}"
        raise InputError(trace.file, found, "the trace of one rank", "pid")
    ids = trace.calls.correlation[trace.calls.correlation > 0]
    shared = ids.size - np.unique(ids).size
    if shared > _SHARED * ids.size:
        found = f"{shared} of {ids.size} runtime calls repeat the correlation of another one"
        raise InputError(trace.file, found, "the trace of one rank", "args.correlation")
