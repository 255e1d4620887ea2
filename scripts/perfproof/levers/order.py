"""Which lever is tried next, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfproof.schema.loop import Candidate, LoopState

# What is assumed of a lever about which nothing is known, and of one that a claim names: a claim's
# share is an upper bound of what fixing it gives back.
UNKNOWN_GAIN = 0.02
CLAIM_YIELD = 0.5
# A class that the precision switch speaks against is tried later, not never.
AGAINST = 0.25
_RISK = {"low": 1.0, "medium": 0.8, "high": 0.6}
_LATENCY = frozenset({"cpu_dispatch", "host_cpu", "dataloader", "host_io"})
_DEVICE = frozenset({"gpu_compute", "gpu_memory_hbm"})


@dataclass(frozen=True)
class Score:
    """Gain to hope for, after what speaks against the lever, and the words for it."""

    gain: float
    why: str


def score(candidate: Candidate, claimed: Mapping[str, float], boundness: str | None) -> Score:
    """How promising a lever is. A heuristic: it decides the order only, never a verdict."""
    gain, words = _hoped(candidate, claimed.get(candidate.id))
    against = _speaks_against(candidate.classes, boundness)
    if against:
        gain *= AGAINST
        words += f"; {against}"
    if candidate.risk != "low":
        words += f"; {candidate.risk} risk"
    return Score(gain * _RISK[candidate.risk], words)


def _hoped(candidate: Candidate, share: float | None) -> tuple[float, str]:
    ends = [end for end in (candidate.expected_low, candidate.expected_high) if end is not None]
    expected = sum(ends) / len(ends) if ends else None
    if share is not None:
        gain = max(CLAIM_YIELD * share, expected or 0.0)
        return gain, f"a verified claim puts {share:.1%} of step time at stake"
    if expected is not None:
        return expected, f"{expected:+.1%} is expected"
    return UNKNOWN_GAIN, "nothing is known of its size"


def _speaks_against(classes: list[str], boundness: str | None) -> str | None:
    kinds = set(classes)
    if boundness == "latency_bound" and kinds and kinds <= _DEVICE:
        return "the workload is latency-bound, which it does not address"
    if boundness == "not_latency_bound" and kinds and kinds <= _LATENCY:
        return "the workload is not latency-bound, which is all it addresses"
    return None


def cannot_pay(candidate: Candidate, state: LoopState) -> str | None:
    """Why runs for this lever would be wasted; None where they may pay.

    Only a known upper end speaks against a lever: of an unknown one anything may come. Who names a
    lever wants it measured.
    """
    high, floor = candidate.expected_high, state.spec.decision.minimum_effect
    if candidate.kind == "diagnostic" or candidate.asked or high is None:
        return None
    if high < floor:
        return f"at most {high:.1%} is expected, and below {floor:.1%} a gain is not worth having"
    if state.detectable is not None and high < state.detectable:
        return (
            f"at most {high:.1%} is expected, and nothing below {state.detectable:.1%} can be seen"
        )
    return None


def ordered(
    candidates: list[Candidate], claimed: Mapping[str, float], boundness: str | None
) -> list[Candidate]:
    """The precision switch first (it orders the rest), then by score; ties in catalog order."""

    def key(candidate: Candidate) -> tuple[bool, bool, float]:
        first = candidate.discriminates and candidate.kind == "diagnostic" and boundness is None
        gain = score(candidate, claimed, boundness).gain
        return (not first, candidate.kind == "diagnostic", -gain)

    return sorted(candidates, key=key)
