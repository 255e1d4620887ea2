"""The verdict: the finding in one sentence, with its number, and honest about what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from perfproof.report.units import percent, quantity
from perfproof.schema.base import REASON_MEANING
from perfproof.schema.claims import BottleneckClass, VerifiedClaim
from perfproof.schema.foms import Foms
from perfproof.schema.report import RunCard
from perfproof.schema.run import State
from perfproof.schema.traces import TraceSummary

CLASS_WORDS: dict[BottleneckClass, str] = {
    BottleneckClass.GPU_COMPUTE: "GPU compute",
    BottleneckClass.GPU_MEMORY_HBM: "GPU memory (HBM)",
    BottleneckClass.CPU_DISPATCH: "CPU dispatch",
    BottleneckClass.COMM_XGMI: "communication inside the node",
    BottleneckClass.COMM_SCALEOUT: "communication between nodes",
    BottleneckClass.DATALOADER: "data loader",
    BottleneckClass.HOST_IO: "host input/output",
    BottleneckClass.HOST_CPU: "host CPU",
}
PRIMARY_WORDS = {
    "throughput_samples_per_s": "throughput",
    "step_time_s": "step time",
    "epoch_time_s": "epoch time",
}


def sentence(
    card: RunCard,
    foms: Foms,
    traces: TraceSummary,
    verified: Sequence[VerifiedClaim],
    unproven: Sequence[VerifiedClaim],
) -> str:
    """How the run ended if not well, its primary figure, its largest verified bottleneck."""
    text = f"{_primary(foms)}; {_bottleneck(traces, verified, unproven)}."
    return _ending(card) + text[0].upper() + text[1:]


def _ending(card: RunCard) -> str:
    if card.state in {None, State.COMPLETED}:
        return ""
    if card.state == State.RUNNING:
        return "The run has not ended. "
    code = "" if card.exit_code is None else f", exit code {card.exit_code}"
    said = card.ended_by or ""
    why = "" if said in {"", "exit"} else f": {said.rstrip('.')}"
    return f"The run did not complete (state {card.state}{code}){why}. "


def _primary(foms: Foms) -> str:
    primary = foms.primary
    name = PRIMARY_WORDS.get(primary.name, primary.name)
    if primary.value is None:
        return f"no {name}: {REASON_MEANING[primary.reasons['value']]}"
    return f"{name} {quantity(primary.value, primary.unit)}"


def _bottleneck(
    traces: TraceSummary, verified: Sequence[VerifiedClaim], unproven: Sequence[VerifiedClaim]
) -> str:
    ranked = [claim for claim in verified if claim.share_of_step is not None]
    if ranked:
        return _largest(ranked[0], ranked[0].share_of_step or 0.0, traces) + _no_timeline(traces)
    if verified:
        count = len(verified)
        return f"{count} verified {_claims(count)}, none with a known share of step time"
    if unproven:
        count = len(unproven)
        return f"no verified bottleneck ({count} {_claims(count)} refuted or inconclusive)"
    if not traces.ranks:
        return "no bottleneck can be named without a readable trace"
    return "no bottleneck was claimed" + _no_timeline(traces)


def _largest(claim: VerifiedClaim, share: float, traces: TraceSummary) -> str:
    words = CLASS_WORDS[claim.bottleneck_class]
    # Without marked steps the share is of whatever was recorded, start-up included.
    marked = all(rank.steps for rank in traces.ranks if rank.rank in claim.ranks)
    whole = "step time" if marked else "the recorded time, in which no steps are marked"
    return f"largest verified bottleneck: {words}, up to {percent(share)} of {whole} ({claim.id})"


def _claims(count: int) -> str:
    return "claim" if count == 1 else "claims"


def _no_timeline(traces: TraceSummary) -> str:
    """The device may matter more than what is claimed; say so when it cannot be seen."""
    if not traces.ranks:
        return "; no readable trace"
    return "" if any(rank.gpu_events for rank in traces.ranks) else "; no device timeline"
