"""Which entries of an author's answer are claims of this run. The others are told with a reason.

Only form is looked at: whether a number is true is the verifier's business.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfproof.claims.metrics import METRICS
from perfproof.claims.vocabulary import Param
from perfproof.core.errors import InputError, nearest
from perfproof.core.files import validate
from perfproof.schema.authors import Rejection
from perfproof.schema.claims import Claim, ClaimSet, Source

MOST_CLAIMS = 40
LONGEST_TEXT = 1000
_PREFIX = {Source.TRACE: "TR", Source.TELEMETRY: "TE"}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,), "regex": (str,), "int": (int,), "float": (int, float),
}  # fmt: skip


@dataclass(frozen=True)
class Terms:
    """What claims of one author may be about."""

    author: str
    run_id: str
    source: Source
    files: frozenset[str]
    ranks: frozenset[int]
    levers: frozenset[str]
    first_number: int = 501  # claims of the rules come first: `TR-001` and on


def accept(text: str, terms: Terms) -> tuple[list[Claim], list[Rejection]]:
    """Claims under their ids in this run, and the entries rejected.

    Raises InputError for an answer that is no claims record of this run and source at all.
    """
    kept: dict[int, Claim] = {}
    rejected: dict[int, str] = {}
    taken: set[str] = set()
    for number, entry in enumerate(_entries(text, terms)):
        try:
            if number >= MOST_CLAIMS:
                raise InputError("claims", f"more than {MOST_CLAIMS} claims", "the largest ones")
            kept[number] = _claim(entry, terms, taken)
            taken.add(kept[number].id)
        except InputError as fault:
            key = f"{fault.key}: " if fault.key and fault.key != Claim.__name__ else ""
            rejected[number] = _one_line(f"{key}{fault.found}; expected {fault.expected}")
    _reject_orphans(kept, rejected)
    told = [Rejection(entry=f"claims.{n}", reason=why) for n, why in sorted(rejected.items())]
    return _renumbered(list(kept.values()), terms), told


def _entries(text: str, terms: Terms) -> list[Any]:
    where = f"{terms.author}: answer"
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise InputError(where, _one_line(f"not JSON ({fault})"), "a claims record") from None
    if not isinstance(data, dict) or not isinstance(data.get("claims"), list):
        raise InputError(where, "no list 'claims'", "a claims record")
    whole = validate({**data, "claims": []}, ClaimSet, where)
    if (whole.run_id, whole.source) != (terms.run_id, terms.source):
        found = f"{whole.source.value} claims of run '{whole.run_id}'"
        raise InputError(where, found, f"{terms.source.value} claims of '{terms.run_id}'")
    return list(data["claims"])


def _claim(entry: Any, terms: Terms, taken: set[str]) -> Claim:
    """One entry as a claim. Raises InputError with the first thing that is wrong."""
    _check_text(entry)
    claim = validate(entry, Claim, "claims")
    if claim.id in taken or not claim.id.startswith(_PREFIX[terms.source]):
        expected = f"an id of its own, {_PREFIX[terms.source]}-001 and on"
        raise InputError("claims", f"'{claim.id}'", expected, "id")
    _check_metric(claim, terms)
    _check_evidence(claim, terms)
    for rank in claim.ranks:
        if rank not in terms.ranks:
            raise InputError("claims", f"rank {rank}", "a rank whose data bear claims", "ranks")
    for lever in claim.levers:
        if lever not in terms.levers:
            raise InputError("claims", f"'{lever}'", "a lever of the model's catalog", "levers")
    return claim


def _check_text(entry: Any) -> None:
    """Refuse what no file can hold, and what no reader would read."""
    try:
        size = len(json.dumps(entry, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError):
        # ValueError: not finite, or half a surrogate pair.
        raise InputError("claims", "a number or text that JSON cannot hold", "a claim") from None
    if size > 20 * LONGEST_TEXT:
        raise InputError("claims", f"{size} bytes", f"at most {20 * LONGEST_TEXT}")
    words = (entry.get(key) for key in ("statement", "remedy")) if isinstance(entry, dict) else ()
    if any(len(text) > LONGEST_TEXT for text in words if isinstance(text, str)):
        raise InputError("claims", "a text without end", f"at most {LONGEST_TEXT} characters")


def _check_metric(claim: Claim, terms: Terms) -> None:
    metric = METRICS.get(claim.metric)
    known = [name for name, one in METRICS.items() if one.source is terms.source]
    if metric is None or claim.metric not in known or claim.source is not terms.source:
        raise InputError("claims", f"unknown metric '{claim.metric}'", nearest(claim.metric, known))
    if claim.unit != metric.unit:
        raise InputError("claims", f"'{claim.unit}'", f"'{metric.unit}'", "unit")
    if metric.scope == "rank" and len(claim.ranks) != 1:
        raise InputError("claims", f"{len(claim.ranks)} ranks", "one rank", "ranks")
    names = sorted(param.name for param in metric.params)
    if sorted(claim.params) != names:
        found = ", ".join(sorted(claim.params)) or "none"
        raise InputError("claims", found, ", ".join(names) or "none", "params")
    for param in metric.params:
        _check_param(param, claim.params[param.name])


def _check_param(param: Param, value: Any) -> None:
    right = isinstance(value, _KINDS[param.kind]) and not isinstance(value, bool)
    if not right or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError("claims", f"{value!r:.80}", param.kind, f"params.{param.name}")
    if param.choices and value not in param.choices:
        expected = "one of: " + ", ".join(param.choices)
        raise InputError("claims", f"{value!r:.80}", expected, f"params.{param.name}")


def _check_evidence(claim: Claim, terms: Terms) -> None:
    """A number without a source is an opinion."""
    if not claim.evidence:
        raise InputError("claims", "a number without evidence", "file, row and column", "evidence")
    for item in claim.evidence:
        if item.file not in terms.files:
            found = f"'{item.file:.80}', which it was not given"
            raise InputError("claims", found, "a file of its inputs", "evidence")
        if not item.where.strip():
            raise InputError("claims", "no row and column", "where it was read", "evidence")


def _reject_orphans(kept: dict[int, Claim], rejected: dict[int, str]) -> None:
    """A claim that is part of a rejected one, or of none, stands on nothing."""
    while True:
        ids = {claim.id for claim in kept.values()}
        orphans = [n for n, claim in kept.items() if not ids.issuperset(claim.part_of)]
        if not orphans:
            return
        for number in orphans:
            rejected[number] = "part_of: names no accepted claim; expected ids of this answer"
            del kept[number]


def _renumbered(claims: list[Claim], terms: Terms) -> list[Claim]:
    prefix = _PREFIX[terms.source]
    ids = {claim.id: f"{prefix}-{terms.first_number + n}" for n, claim in enumerate(claims)}
    return [
        claim.model_copy(
            update={
                "id": ids[claim.id],
                "part_of": [ids[name] for name in claim.part_of],
                "author": terms.author,
            }
        )
        for claim in claims
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
