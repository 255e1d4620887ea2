"""Reading a claims file that anybody may have written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from perfproof.claims.verifier.judge import Recompute, judge
from perfproof.core.errors import InputError
from perfproof.core.files import read_json, validate
from perfproof.schema.base import Problem
from perfproof.schema.claims import Claim, ClaimSet, Source, VerifiedSet

_DEEPEST = 20
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def verify_file(path: Path, run_id: str, source: Source, recompute: Recompute) -> VerifiedSet:
    """Judge every claim of the file, in order. What is no claim at all becomes a problem."""
    claims, problems = read_claims(path, run_id, source)
    named = {claim.id: claim for claim in claims}
    return VerifiedSet(
        run_id=run_id,
        source=source,
        claims=[judge(claim, source, recompute, named) for claim in claims],
        problems=problems,
    )


def read_claims(path: Path, run_id: str, source: Source) -> tuple[list[Claim], list[Problem]]:
    """The valid claims; the file's own problems, and one for each entry that is no claim."""
    data = read_json(path)
    entries = data.get("claims") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise InputError(path, "no list 'claims'", "a claims record", "claims")
    beside = {**data, "claims": []}
    if fault := _unusable(beside):
        raise InputError(path, *fault)
    whole = validate(beside, ClaimSet, path)
    if whole.run_id != run_id:
        raise InputError(path, f"claims of run '{whole.run_id}'", f"'{run_id}'", "run_id")
    if whole.source is not source:
        raise InputError(path, f"{whole.source.value} claims", f"{source.value} claims", "source")
    claims, invalid = _sorted_out(entries, path)
    # What the analyst could not say must reach the report too.
    return claims, [*whole.problems, *invalid]


def _sorted_out(entries: list[Any], path: Path) -> tuple[list[Claim], list[Problem]]:
    claims: list[Claim] = []
    problems: list[Problem] = []
    for number, entry in enumerate(entries):
        place = f"claims.{number}"
        try:
            if unusable := _unusable(entry):
                raise InputError(path.name, *unusable, Claim.__name__)
            claims.append(validate(entry, Claim, path.name))
        except InputError as fault:
            key = place if fault.key == Claim.__name__ else f"{place}.{fault.key}"
            what = f"{key}: {fault.found}; expected {fault.expected}"
            problems.append(Problem(where=path.name, what=what))
    return claims, problems


def _unusable(data: Any) -> tuple[str, str] | None:
    """What of `data` no record can hold, and what was expected: found without recursion."""
    left = [(data, 0)]
    while left:
        value, depth = left.pop()
        if depth > _DEEPEST:
            return f"nested deeper than {_DEEPEST} levels", "a claim's few"
        if isinstance(value, str) and _LONE_SURROGATE.search(value):
            return f"text {value[:40]!r}, half a surrogate pair", "Unicode text"
        if isinstance(value, dict):
            left += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            left += [(part, depth + 1) for part in value]
    return None
