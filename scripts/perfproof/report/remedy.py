"""The remedy probe of a report: what was tried for the largest claim, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from perfproof.core.files import read_record
from perfproof.report.units import gain as signed
from perfproof.schema.base import Reason
from perfproof.schema.loop import LoopState, ProbeChoice
from perfproof.schema.report import RemedyProbe


def read_remedy(files: Sequence[Path]) -> RemedyProbe | None:
    """From the choice, and the last step of its runs where a lever was chosen; None: not asked."""
    if not files:
        return None
    state = read_record(files[1], LoopState) if len(files) > 1 else None
    return remedy(read_record(files[0], ProbeChoice), state)


def remedy(choice: ProbeChoice, state: LoopState | None) -> RemedyProbe:
    """The probe's gain with its interval, or why there is none."""
    gain = state.confirmation if state else None
    found = {
        "lever": choice.lever,
        "claim": choice.claim,
        "effect": gain.effect if gain else None,
        "interval": gain.interval if gain else None,
    }
    why = Reason.NOT_APPLICABLE if choice.lever is None else Reason.TOO_FEW_VALUES
    return RemedyProbe.model_validate(
        {
            **found,
            "runs": len(state.results) if state else 0,
            "node_hours": math.fsum(r.node_hours or 0.0 for r in state.results) if state else 0.0,
            "why": state.action.why if state and not gain else choice.why,
            "reasons": {name: why for name, value in found.items() if value is None},
        }
    )


def remedy_sentence(probe: RemedyProbe) -> str:
    """The probe in a sentence or two."""
    if probe.lever is None:
        return f"No remedy was tried: {probe.why}."
    head = f"{probe.lever}, which claim {probe.claim} names, was tried on one node"
    if probe.effect is None:
        return f"{head} and gave no comparison: {probe.why}."
    cost = f"{probe.runs} runs, {probe.node_hours:.3f} node-hours"
    if probe.interval is None:
        return f"{head}: {signed(probe.effect)}, without an interval ({cost})."
    low, high = probe.interval
    sure = "" if low > 0 or high < 0 else ": no difference was shown"
    between = f"[{signed(low)}, {signed(high)}]"
    return (
        f"{head}: samples a second {signed(probe.effect)} {between} at 95 %{sure} ({cost}). "
        "A probe decides nothing: the optimizer loop does."
    )
