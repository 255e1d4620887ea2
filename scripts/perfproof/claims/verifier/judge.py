"""From a recomputed number to a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perfproof.claims.metrics import METRICS
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.claims.vocabulary import Metric, Param
from perfproof.schema.base import Reason
from perfproof.schema.claims import Claim, Source, Verdict, VerifiedClaim

_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "regex": (str,), "int": (int,), "float": (int, float),
}  # fmt: skip
_PERCENT = re.compile(r"(?<![\d.])(-?\d+(?:\.(\d+))?)\s*(?:%|per ?cent)")
_LONGEST_REGEX = 4000
LEAST_HELD, _HELD_TOLERANCE = 0.9, 0.01


@dataclass(frozen=True)
class Recomputed:
    """What the raw data say.

    `limit` is the largest share of the step that they allow, None for no share. `held_by` says how
    much of the claim's time the time of another claim holds.
    """

    value: float
    limit: float | None
    how: str
    contradictions: tuple[str, ...] = ()
    held_by: Callable[[Claim], float] | None = None


Recompute = Callable[[Claim, Metric], Recomputed]


def judge(
    claim: Claim, source: Source, recompute: Recompute, others: Mapping[str, Claim]
) -> VerifiedClaim:
    """One claim's verdict. Never raises on a claim's content: what cannot be said is a note.

    `others`: all claims of the file by id.
    """
    try:
        metric = _checked(claim, source)
        found = recompute(claim, metric)
        containment = [fault for name in claim.part_of
                       for fault in _part_faults(claim, name, others.get(name), found)]  # fmt: skip
    except CannotSayError as why:
        return _verdict(claim, Verdict.INCONCLUSIVE, None, 0.0, str(why))
    tolerance = metric.tolerance(found.value)
    faults = [*_number_faults(claim, found, tolerance), *found.contradictions, *containment]
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
    if param.optional and param.name not in params:
        return
    value = params.get(param.name)
    if isinstance(value, bool) or not isinstance(value, _KINDS[param.kind]):
        raise CannotSayError(f"parameter '{param.name}' is {value!r:.80}, expected {param.kind}")
    if param.choices and value not in param.choices:
        raise CannotSayError(
            f"parameter '{param.name}' is {value!r:.80}, expected one of {param.choices}"
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


def _part_faults(claim: Claim, name: str, outer: Claim | None, found: Recomputed) -> Iterator[str]:
    """What is wrong with `name` in the claim's `part_of`."""
    if outer is None or outer.id == claim.id:
        yield f"part_of names {name}, no other claim of this file"
        return
    _checked(outer, claim.source)
    if found.held_by is None:
        raise CannotSayError(f"part_of {name}: there are no times to compare")
    if outer.share_of_step is None or outer.share_of_step < (claim.share_of_step or 0.0):
        yield f"part_of names {name}, which does not rank above"
    if (part := found.held_by(outer)) < LEAST_HELD - _HELD_TOLERANCE:
        yield f"part_of names {name}, whose time holds only {100 * part:.1f} % of this one's"


def _wording_faults(claim: Claim, metric: Metric, found: Recomputed, tolerance: float) -> list[str]:
    faults = []
    expected = metric.class_rule.of(claim.params)
    if claim.bottleneck_class is not expected:
        faults.append(f"class {claim.bottleneck_class.value}, the vocabulary says {expected}")
    limit = found.limit
    if claim.share_of_step is not None and (
        limit is None or claim.share_of_step > limit + tolerance
    ):
        at_most = "null" if limit is None else f"at most {limit:.4g}"
        faults.append(f"share_of_step {claim.share_of_step:.4g}, the rule allows {at_most}")
    if metric.unit == "fraction" and not _statement_agrees(claim):
        faults.append(
            f"the statement's first percentage is not the value, {100 * claim.value:.4g} %"
        )
    return faults


def _statement_agrees(claim: Claim) -> bool:
    """Whether the statement's first percentage, if it has any, is the claim's value."""
    first = _PERCENT.search(claim.statement)
    if first is None:
        return True
    digits = len(first[2] or "")
    return abs(float(first[1]) - 100 * claim.value) <= 0.51 * 10.0**-digits
