"""The run card: which run this is, on which nodes, and how it ended."""

from __future__ import annotations

from typing import Any

from perfproof.schema.base import Reason
from perfproof.schema.cluster import RunEnding
from perfproof.schema.foms import Foms
from perfproof.schema.report import RunCard
from perfproof.schema.run import Manifest
from perfproof.schema.traces import TraceSummary

_FROM_INTEGRITY = (
    "node_list",
    "model",
    "workload",
    "ranks",
    "device_name",
    "dtype",
    "recipe_digest",
)
_FROM_MANIFEST = ("state", "exit_code", "ended_by", "started_at", "duration_s")


def run_card(
    foms: Foms, traces: TraceSummary, manifest: Manifest | None, ending: RunEnding | None = None
) -> RunCard:
    """What the run was, from its integrity vector; how it ended, from its manifest.

    `ending` knows better than the manifest: a run that SLURM killed could not write down why.
    """
    values: dict[str, Any] = {"run_id": foms.run_id}
    reasons: dict[str, Reason] = {}
    for field in _FROM_INTEGRITY:
        values[field] = getattr(foms.integrity, field)
        if values[field] is None:
            reasons[field] = foms.integrity.reasons[field]
    for field in _FROM_MANIFEST:
        values[field] = getattr(manifest, field) if manifest else None
        if values[field] is None:
            reasons[field] = manifest.reasons[field] if manifest else Reason.NO_MANIFEST
    if ending is not None:
        words = (ending.state.value, *([ending.cause.value] if ending.cause else []))
        values["state"] = ": ".join(words)
        reasons.pop("state", None)
        if ending.evidence:
            values["ended_by"] = ending.evidence
            reasons.pop("ended_by", None)
    values["trial"] = manifest.resolved.trial if manifest else None
    if manifest is None:
        reasons["trial"] = Reason.NO_MANIFEST
    _device_from_trace(values, reasons, traces)
    return RunCard(**values, reasons=reasons)


def _device_from_trace(
    values: dict[str, Any], reasons: dict[str, Reason], traces: TraceSummary
) -> None:
    """A trace names its device; take that where neither log nor manifest did."""
    names = sorted({rank.device_name for rank in traces.ranks if rank.device_name})
    if values["device_name"] is None and names:
        values["device_name"] = " / ".join(names)
        del reasons["device_name"]
