"""Claims with their verdicts, as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from perfproof.report.units import Missing, allowed, clip, percent, quantity, shown
from perfproof.report.verdict import CLASS_WORDS
from perfproof.report.view_foms import joined
from perfproof.schema.claims import VerifiedClaim

PARAMETER_LENGTH = 100
_FIRST_SENTENCE = re.compile(r"^(.+?\.)\s+[A-Z].*$", re.DOTALL)


@dataclass(frozen=True)
class ClaimView:
    """One claim. `headline` is its first sentence, `share_percent` the length of its bar."""

    id: str
    kind: str
    statement: str
    headline: str
    share: str
    share_percent: str
    value: str
    verifier_value: str
    tolerance: str
    metric: str
    scope: str
    evidence: list[tuple[str, str]]
    remedy: str
    levers: list[str]
    note: str
    author: str


def claim_view(claim: VerifiedClaim) -> ClaimView:
    """What a reader needs to judge the claim: both numbers, their origin and what to try."""
    show = partial(quantity, unit=claim.unit)
    share = shown(claim, "share_of_step", percent)
    return ClaimView(
        id=claim.id,
        kind=CLASS_WORDS[claim.bottleneck_class],
        statement=claim.statement,
        headline=_FIRST_SENTENCE.sub(r"\1", claim.statement),
        share=share if isinstance(share, Missing) else f"up to {share}{_part_of(claim)}",
        share_percent=f"{100 * (claim.share_of_step or 0.0):.2f}",
        value=show(claim.value),
        verifier_value=shown(claim, "verifier_value", show),
        tolerance=allowed(claim.tolerance, claim.unit),
        metric=_metric(claim),
        scope=_scope(claim.ranks),
        evidence=[(item.file, item.where) for item in claim.evidence],
        remedy=shown(claim, "remedy"),
        levers=claim.levers,
        note=claim.note,
        author=claim.author,
    )


def _metric(claim: VerifiedClaim) -> str:
    """Metric and parameters; long ones, such as expressions, stand in full in the JSON."""
    if not claim.params:
        return claim.metric
    values = {key: clip(str(claim.params[key]), PARAMETER_LENGTH) for key in sorted(claim.params)}
    return f"{claim.metric}({', '.join(f'{key}={value}' for key, value in values.items())})"


def _scope(ranks: list[int]) -> str:
    if not ranks:
        return "whole run"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {joined(list(ranks))}"


def _part_of(claim: VerifiedClaim) -> str:
    """Shares of a claim and of what it is part of do not add up."""
    return f", part of {', '.join(claim.part_of)}" if claim.part_of else ""
