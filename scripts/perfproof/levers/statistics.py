"""The decisions of the optimizer loop: what the runs say of a lever, and which run comes next.

`docs/decisions.md` explains the rules and shows how often they err.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtr, stdtrit

from perfproof.levers.contrast import (
    Contrast,
    contrast,
    interval,
    relative,
)
from perfproof.levers.contrast import drifted as drifted
from perfproof.levers.contrast import noise_of as noise_of
from perfproof.levers.regression import Run as Run
from perfproof.levers.sequential import p_bounds
from perfproof.schema.base import Reason
from perfproof.schema.loop import Decision, Judgement, Noise

# Spread of true effects that is assumed where effects are shrunk, in ln(figure).
EFFECT_SD = 0.05
# Fewest runs of each side, side by side, behind an accept: no single run may decide.
CANDIDATE_RUNS, BEST_RUNS = 2, 3
# Share of the runs side by side that may be set aside, or cut off, behind an accept.
DISREGARDED = 0.2
# p-value that must hold whichever single run is left out.
P_WITHOUT_ANY = 0.004
# Share of the error budget that is spent by Gaussian theory; the rest is for what that leaves out.
SPENT = 0.5
# Chance of a later accept below which going on is a waste.
_HOPE = 0.02


def judge(
    runs: Sequence[Run],
    best: str,
    candidate: str,
    levers: int,
    decision: Decision,
    prior: Noise | None,
) -> Judgement:
    """What the runs say of `candidate` against `best`, sharing the error among `levers`."""
    counts = tuple(sum(run.arm == arm for run in runs) for arm in (candidate, best))
    found = contrast(runs, best, candidate, prior)
    if found is None:
        return _nothing(counts, noise_of(runs, prior), levers, decision)
    bound = _p_bound(found.candidate_runs, levers, decision)
    verdict = _verdict(found, runs, best, candidate, bound, levers, decision)
    return _judgement(verdict, found, counts, bound, detectable(found.noise, levers, decision))


def _verdict(
    found: Contrast,
    runs: Sequence[Run],
    best: str,
    candidate: str,
    bound: float | None,
    levers: int,
    decision: Decision,
) -> str:
    if found.candidate_runs >= CANDIDATE_RUNS and _not_worth_having(found, decision):
        return "reject"
    if bound is not None and _bracketed(runs, best, candidate) and _proven(found, bound):
        return "accept"
    spent = len(_own(runs, best, candidate))
    if spent >= decision.max_runs_per_lever or _hopeless(found, spent, levers, decision):
        return "inconclusive"
    return "again"


def _not_worth_having(found: Contrast, decision: Decision) -> bool:
    """Whether the effect is below the least worth having, as sure as the power allows."""
    return found.bound(1 - decision.power) < math.log1p(decision.minimum_effect)


def _proven(found: Contrast, bound: float) -> bool:
    counted = found.candidate_runs + found.best_runs
    enough = found.candidate_runs >= CANDIDATE_RUNS and found.best_runs >= BEST_RUNS
    alike = found.disregarded <= DISREGARDED * (counted + found.disregarded)
    return enough and alike and found.p_value() < bound and found.p_without_any() < P_WITHOUT_ANY


def _hopeless(found: Contrast, spent: int, levers: int, decision: Decision) -> bool:
    """Whether even the largest effect that is still likely would hardly be accepted in the end."""
    last = looks(decision)[-1]
    done = found.candidate_runs / last
    if found.candidate_runs < CANDIDATE_RUNS or done >= 1:
        return False
    final = found.error * math.sqrt(done)
    mean = found.effect * done + found.bound(1 - decision.power) * (1 - done)
    p_bound = _p_bound(last, levers, decision) or 0.0
    needed = -float(stdtrit(found.df + decision.max_runs_per_lever - spent, p_bound)) * final
    return float(ndtr((mean - needed) / (final * math.sqrt(1 - done)))) < _HOPE


def looks(decision: Decision) -> tuple[int, ...]:
    """Runs of the candidate at each look: up to half of what a lever may cost."""
    return tuple(range(CANDIDATE_RUNS, max(decision.max_runs_per_lever // 2, CANDIDATE_RUNS) + 1))


def _p_bound(candidate_runs: int, levers: int, decision: Decision) -> float | None:
    """Bound at this look; None before the first."""
    at = looks(decision)
    passed = [look for look in at if look <= candidate_runs]
    if not passed:
        return None
    fractions = tuple(look / at[-1] for look in at)
    bounds = p_bounds(SPENT * decision.false_accept_per_loop / max(1, levers), fractions)
    return bounds[len(passed) - 1]


def _own(runs: Sequence[Run], best: str, candidate: str) -> list[Run]:
    """Runs made for the candidate: its own and those of the best since, in order."""
    start = min((run.position for run in runs if run.arm == candidate), default=math.inf)
    own = [run for run in runs if run.arm in (best, candidate) and run.position >= start]
    return sorted(own, key=lambda run: run.position)


def _bracketed(runs: Sequence[Run], best: str, candidate: str) -> bool:
    """Whether runs of the best lie before and after those of the candidate."""
    own = _own(runs, best, candidate)
    before = any(run.arm == best and run.position < own[0].position for run in runs)
    return before and own[-1].arm == best


def next_arm(runs: Sequence[Run], best: str, candidate: str, decision: Decision) -> str:
    """Whose run comes next: candidate and best in turn, so that each is held against neighbours.

    A first run of the candidate that falls far short is repeated at once: two that agree end it.
    The last run that a lever may cost is the best's.
    """
    own = _own(runs, best, candidate)
    if not own:
        return candidate
    if len(own) + 1 >= decision.max_runs_per_lever:
        return best
    falls_short = len(own) == 1 and _falls_short(runs, best, candidate, decision)
    return candidate if own[-1].arm == best or falls_short else best


def _falls_short(runs: Sequence[Run], best: str, candidate: str, decision: Decision) -> bool:
    found = contrast(runs, best, candidate, None)
    return found is not None and _not_worth_having(found, decision)


def detectable(noise: Noise, levers: int, decision: Decision) -> float:
    """Smallest relative gain that a lever's runs show with the asked power.

    Half the runs are the candidate's; the best's are the rest and the baseline's repetitions.
    """
    last = looks(decision)[-1]
    others = max(decision.max_runs_per_lever - last, 0) + decision.baseline_runs
    error = noise.sd * math.sqrt(1 / last + 1 / others)
    df = noise.df + decision.max_runs_per_lever - CANDIDATE_RUNS
    bound = _p_bound(last, levers, decision) or 0.0
    needed = -float(stdtrit(df, bound)) + float(stdtrit(df, decision.power))
    return relative(error * needed)


def confirm(runs: Sequence[Run], best: str, baseline: str, prior: Noise | None) -> Judgement:
    """Total gain of `best` over `baseline` from fresh interleaved runs, with its 95 % interval."""
    own = [run for run in runs if run.arm in (best, baseline)]
    counts = tuple(sum(run.arm == arm for run in own) for arm in (best, baseline))
    found = contrast(own, baseline, best, prior)
    if found is None:
        return _nothing(counts, noise_of(own, prior), 1, Decision())
    verdict = "accept" if found.bound(0.975) > 0 else "inconclusive"
    return _judgement(verdict, found, counts, None, None)


def _judgement(
    verdict: str,
    found: Contrast,
    counts: tuple[int, ...],
    p_bound: float | None,
    smallest: float | None,
) -> Judgement:
    kept = EFFECT_SD**2 / (EFFECT_SD**2 + found.error**2)
    values = {"p_bound": p_bound, "detectable": smallest}
    return Judgement.model_validate(
        {
            "verdict": verdict,
            "effect": relative(found.effect),
            "interval": interval(found),
            "shrunk": relative(kept * found.effect),
            "p_value": found.p_value(),
            "candidate_runs": counts[0],
            "best_runs": counts[1],
            "noise": found.noise,
            "reasons": {k: Reason.NOT_APPLICABLE for k, v in values.items() if v is None},
            **values,
        }
    )


def _nothing(
    counts: tuple[int, ...], noise: Noise | None, levers: int, decision: Decision
) -> Judgement:
    """Too few runs for an effect."""
    smallest = None if noise is None else detectable(noise, levers, decision)
    values = {"noise": noise, "detectable": smallest}
    missing: tuple[str, ...] = ("effect", "interval", "shrunk", "p_value", "p_bound")
    missing += tuple(name for name, value in values.items() if value is None)
    return Judgement.model_validate(
        {
            "verdict": "again",
            "candidate_runs": counts[0],
            "best_runs": counts[1],
            **dict.fromkeys(missing),
            "reasons": dict.fromkeys(missing, Reason.TOO_FEW_VALUES),
            **{k: v for k, v in values.items() if v is not None},
        }
    )


__all__ = ["Run", "confirm", "detectable", "drifted", "judge", "next_arm", "noise_of"]
