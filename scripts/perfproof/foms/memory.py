"""Device memory that a run reserved, as the trainer prints it."""

from __future__ import annotations

from perfproof.foms.known import UnknownValueError, need
from perfproof.foms.logs import RunLog
from perfproof.foms.sources import Sources
from perfproof.schema.base import Reason


def reserved_bytes(logs: RunLog, sources: Sources) -> int:
    """Peak over steps and ranks. A trainer on a CPU prints 0."""
    rank0 = sources.manifest.rank0 if sources.manifest else None
    if rank0 is not None and rank0.device.kind == "cpu":
        raise UnknownValueError(Reason.NO_DEVICE)
    log = need(logs.log, logs.missing)
    if log.reserved_bytes == 0:
        raise UnknownValueError(Reason.NO_DEVICE)
    return need(log.reserved_bytes, Reason.NOT_PRINTED)


def reserved_fraction(logs: RunLog, sources: Sources) -> float:
    """Of the capacity of the device that the run recorded; no capacity is ever assumed."""
    reserved = reserved_bytes(logs, sources)
    rank0 = sources.manifest.rank0 if sources.manifest else None
    capacity = rank0.device.memory_bytes if rank0 else None
    return reserved / need(capacity, Reason.DEVICE_CAPACITY_UNKNOWN)
