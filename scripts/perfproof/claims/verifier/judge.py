"""From a recomputed number to a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from perfproof.claims.metrics import METRICS
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.claims.vocabulary import Metric, Param, ShareRule
from perfproof.schema.base import Reason
from perfproof.schema.claims import Claim, Source, Verdict, VerifiedClaim

_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "regex": (str,), "int": (int,), "float": (int, float),
}  # fmt: skip
_PERCENT = re.compile(r"(\d+(?:\.(\d+))?)\s*%")
_LONGEST_REGEX = 4000


@dataclass(frozen=True)
class Recomputed:
    """What the raw data say."""

    value: float
    idle: float
    loader_idle: float
    how: str
    contradictions: tuple[str, ...] = ()


Recompute = Callable[[Claim, Metric], Recomputed]


def judge(claim: Claim, source: Source, recompute: Recompute) -> VerifiedClaim:
    """One claim's verdict. Never raises on a claim's content: what cannot be said is a note."""
    try:
        metric = _checked(claim, source)
        found = recompute(claim, metric)
    except CannotSayError as why:
        return _verdict(claim, Verdict.INCONCLUSIVE, None, 0.0, str(why))
    tolerance = metric.tolerance(found.value)
    faults = [*_number_faults(claim, found, tolerance), *found.contradictions]
    faults += _wording_faults(claim, metric, found, tolerance)
    verdict = Verdict.REFUTED if faults else Verdict.VERIFIED
    return _verdict(claim, verdict, found.value, tolerance, "; ".join([found.how, *faults]))


def _verdict(
    claim: Claim, verdict: Verdict, value: float | None, tolerance: float, note: str
) -> VerifiedClaim:
    fields = claim.model_dump(by_alias=True)
    if value is None:
        fields["reasons"] = {**fields["reasons"], "verifier_value": Reason.NOT_APPLICABLE}
    return VerifiedClaim.model_validate(
        {**fields, "verdict": verdict, "verifier_value": value, "tolerance": tolerance,
         "note": note}
    )  # fmt: skip


def _checked(claim: Claim, source: Source) -> Metric:
    metric = METRICS.get(claim.metric)
    if metric is None:
        raise CannotSayError(f"unknown metric '{claim.metric}'")
    if metric.source is not source or claim.source is not source:
        raise CannotSayError(f"'{claim.metric}' is no metric of {source.value} data")
    if claim.unit != metric.unit:
        raise CannotSayError(f"unit '{claim.unit}', expected '{metric.unit}'")
    expected = 1 if metric.scope == "rank" else None
    if expected is not None and len(claim.ranks) != expected:
        raise CannotSayError(f"{len(claim.ranks)} ranks, expected one")
    for param in metric.params:
        _check_param(claim.params, param)
    stray = sorted(claim.params.keys() - {param.name for param in metric.params})
    if stray:
        raise CannotSayError(f"unknown parameters: {', '.join(stray)}")
    return metric


def _check_param(params: dict[str, Any], param: Param) -> None:
    value = params.get(param.name)
    if isinstance(value, bool) or not isinstance(value, _KINDS[param.kind]):
        raise CannotSayError(f"parameter '{param.name}' is {value!r}, expected {param.kind}")
    if param.choices and value not in param.choices:
        raise CannotSayError(
            f"parameter '{param.name}' is {value!r}, expected one of {param.choices}"
        )
    if param.kind == "regex":
        _check_regex(param.name, str(value))


def _check_regex(name: str, value: str) -> None:
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as fault:
        raise CannotSayError(f"parameter '{name}' is no regular expression: {fault}") from None
    if len(value) > _LONGEST_REGEX:
        raise CannotSayError(f"parameter '{name}' is longer than {_LONGEST_REGEX} characters")


def _number_faults(claim: Claim, found: Recomputed, tolerance: float) -> list[str]:
    distance = abs(claim.value - found.value)
    if distance <= tolerance:
        return []
    return [f"the claim says {claim.value:.6g}, off by {distance:.3g} (accepted: {tolerance:.3g})"]


def _wording_faults(claim: Claim, metric: Metric, found: Recomputed, tolerance: float) -> list[str]:
    faults = []
    expected = metric.class_rule.of(claim.params)
    if claim.bottleneck_class is not expected:
        faults.append(f"class {claim.bottleneck_class.value}, the vocabulary says {expected}")
    limit = share_limit(metric.share, found)
    if claim.share_of_step is not None and (
        limit is None or claim.share_of_step > limit + tolerance
    ):
        at_most = "null" if limit is None else f"at most {limit:.4g}"
        faults.append(f"share_of_step {claim.share_of_step:.4g}, the rule allows {at_most}")
    if metric.unit == "fraction" and not _statement_agrees(claim):
        faults.append(f"no percentage of the statement is the value, {100 * claim.value:.4g} %")
    return faults


def share_limit(rule: ShareRule, found: Recomputed) -> float | None:
    """The largest `share_of_step` that the recomputed value allows."""
    match rule:
        case ShareRule.VALUE:
            return found.value
        case ShareRule.HOST:
            return min(found.value, found.idle)
        case ShareRule.DISPATCH:
            return max(0.0, found.value - found.loader_idle)
        case ShareRule.COMPLEMENT:
            return 1 - found.value
        case ShareRule.NONE:
            return None


def _statement_agrees(claim: Claim) -> bool:
    """Whether one of the statement's percentages, if it has any, is the claim's value."""
    numbers = _PERCENT.findall(claim.statement)
    return not numbers or any(
        abs(float(number) - 100 * claim.value) <= 0.51 * 10.0 ** -len(decimals)
        for number, decimals in numbers
    )
