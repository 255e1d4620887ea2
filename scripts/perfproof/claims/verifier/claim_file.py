"""Reading a claims file that anybody may have written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from perfproof.claims.verifier.judge import Recompute, judge
from perfproof.core.errors import InputError
from perfproof.core.files import read_json, validate
from perfproof.core.step import Status, ok_or_partial
from perfproof.schema.base import Problem
from perfproof.schema.claims import Claim, ClaimSet, Source, VerifiedSet


def verify_file(path: Path, run_id: str, source: Source, recompute: Recompute) -> VerifiedSet:
    """Judge every claim of the file, in order. What is no claim at all becomes a problem."""
    claims, problems = read_claims(path, run_id, source)
    return VerifiedSet(
        run_id=run_id,
        source=source,
        claims=[judge(claim, source, recompute) for claim in claims],
        problems=problems,
    )


def read_claims(path: Path, run_id: str, source: Source) -> tuple[list[Claim], list[Problem]]:
    """The valid claims; the file's own problems, and one for each entry that is no claim."""
    data = read_json(path)
    entries = data.get("claims") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise InputError(path, "no list 'claims'", "a claims record", "claims")
    whole = validate({**data, "claims": []}, ClaimSet, path)
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
            claims.append(validate(entry, Claim, path.name))
        except InputError as fault:
            key = place if fault.key == Claim.__name__ else f"{place}.{fault.key}"
            what = f"{key}: {fault.found}; expected {fault.expected}"
            problems.append(Problem(where=path.name, what=what))
    return claims, problems


def verdict_status(found: VerifiedSet) -> Status:
    """How many claims got which verdict; entries that are no claims make it partial."""
    counts = Counter(claim.verdict.value for claim in found.claims)
    done = ", ".join(f"{counts[verdict]} {verdict}" for verdict in sorted(counts)) or "no claims"
    return ok_or_partial([f"{p.where}: {p.what}" for p in found.problems], done)
