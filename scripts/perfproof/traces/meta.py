"""What a trace file says about its origin: rank, world, devices, absolute time."""

from __future__ import annotations

from typing import Any

from perfproof.traces.args import as_int
from perfproof.traces.clock import to_ns
from perfproof.traces.decode import Document
from perfproof.traces.model import Meta

# Microseconds since 1970 in 2017..2100: a time that is absolute by itself.
_EPOCH_US = range(1_483_228_800_000_000, 4_102_444_800_000_000)
_MOST_RANKS = 1_000_000  # more than any machine has


def read_meta(document: Document) -> Meta:
    """Metadata of a document; what is missing or malformed is None."""
    distributed = document.distributedInfo if isinstance(document.distributedInfo, dict) else {}
    devices = document.deviceProperties if isinstance(document.deviceProperties, list) else []
    names = {str(entry.get("name") or "") for entry in devices if isinstance(entry, dict)}
    rank, said = _whole(distributed.get("rank")), distributed.get("world_size")
    world_size = _world_size(said, rank)
    return Meta(
        rank=rank,
        world_size=world_size,
        device_names=tuple(sorted(names - {""})),
        base_time_ns=_base_time(document),
        visible_devices=len(devices),
        impossible=() if said is None or world_size is not None else (_not_a_size(said, rank),),
    )


def _world_size(said: Any, rank: int | None) -> int | None:
    size = _whole(said)
    least = 1 if rank is None else rank + 1
    return size if size is not None and least <= size <= _MOST_RANKS else None


def _not_a_size(said: Any, rank: int | None) -> str:
    shown = said if isinstance(said, (int, float)) else type(said).__name__
    whose = "" if rank is None else f" for rank {rank}"
    return f"distributedInfo.world_size is {shown}: no number of ranks{whose}, not used"


def _whole(value: Any) -> int | None:
    number = as_int(value, -1) if isinstance(value, (int, str)) else -1
    return number if number >= 0 else None


def _base_time(document: Document) -> int | None:
    """Unix time of trace time 0; 0 where timestamps are themselves unix times (before 2024)."""
    if document.baseTimeNanoseconds is not None:
        return _whole(document.baseTimeNanoseconds)
    for event in document.traceEvents:
        if event.ph == "X":
            start, timed = to_ns([event.ts])
            return 0 if timed[0] and int(start[0]) // 1000 in _EPOCH_US else None
    return None
