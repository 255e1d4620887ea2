"""Roles that make no claims: the launcher proposes the next run, the synthesizer sums up a report.

They are held to the same contract as analysts; of a summary only lines are kept whose numbers stand
in the verified claims that they name.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perfproof.claims.authors.author import author_of
from perfproof.claims.authors.contract import Task, ask
from perfproof.claims.catalogs import read_catalog
from perfproof.core.errors import InputError
from perfproof.core.files import canonical_json, read_record, read_text, validate, write_text
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.schema.authors import Rejection
from perfproof.schema.claims import VerifiedClaim
from perfproof.schema.config import Settings
from perfproof.schema.report import Report

ANSWERS = {"launcher": "settings.json", "synthesizer": "summary.md"}
MOST_LINES = 12
_PROPOSED = ("trial", "nodes", "repetition")
_CITED = re.compile(r"\[(T[RE]-\d{3}(?:, ?T[RE]-\d{3})*)\]")
_NUMBER = re.compile(r"(?<![\w.])[-−]?(\d+)(?:\.(\d+))?(\s*%)?")


def proposal(text: str, settings: Settings, claims: Iterable[VerifiedClaim]) -> dict[str, Any]:
    """The proposed settings. Raises InputError where they break the launcher's rules."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("proposal", "not JSON", "an object of settings") from None
    stray = sorted(set(data) - set(_PROPOSED)) if isinstance(data, dict) else ["no object"]
    if stray:
        raise InputError("proposal", ", ".join(stray)[:200], f"only {', '.join(_PROPOSED)}")
    asked = validate({**settings.model_dump(), **data}, Settings, "proposal")
    new, old = _levers(asked.trial), set(_levers(settings.trial))
    if new != sorted(set(new)):
        raise InputError("proposal", f"'{asked.trial}'", "lever ids once each, sorted", "trial")
    added = set(new) - old
    named = {lever for claim in claims for lever in claim.levers}
    if len(added) > 1 or not added <= named:
        expected = "at most one lever more, which a verified claim names"
        raise InputError("proposal", f"'{asked.trial}'", expected, "trial")
    return {key: getattr(asked, key) for key in _PROPOSED}


def _levers(trial: str) -> list[str]:
    return [] if trial == "baseline" else trial.split("+")


def backed_lines(text: str, claims: Sequence[VerifiedClaim]) -> tuple[list[str], list[Rejection]]:
    """The lines of a summary whose every number is one of the verified claims that they name."""
    by_id = {claim.id: claim for claim in claims}
    kept: list[str] = []
    rejected: list[Rejection] = []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        fault = _fault(line, by_id) if len(kept) < MOST_LINES else f"more than {MOST_LINES} lines"
        if fault:
            rejected.append(Rejection(entry=f"line {number}", reason=fault))
        else:
            kept.append(line)
    return kept, rejected


def _fault(line: str, by_id: dict[str, VerifiedClaim]) -> str:
    cited = [name.strip() for group in _CITED.findall(line) for name in group.split(",")]
    if not cited:
        return "names no claim"
    if unknown := sorted(set(cited) - by_id.keys()):
        return f"{unknown[0]} is no verified claim"
    claims = [by_id[name] for name in cited]
    for match in _NUMBER.finditer(_CITED.sub("", line)):
        if not _is_backed(match, claims):
            return f"{match[0].strip()} is no number of {', '.join(cited)}"
    return ""


def _is_backed(match: re.Match[str], claims: Sequence[VerifiedClaim]) -> bool:
    digits, in_percent = match[2] or "", match[3] is not None
    said = float(f"{match[1]}.{digits or 0}")
    slack = 0.51 * 10.0 ** -len(digits)
    return any(abs(said - abs(true)) <= slack for claim in claims for true in
               _numbers(claim, in_percent))  # fmt: skip


def _numbers(claim: VerifiedClaim, in_percent: bool) -> Iterable[float]:
    """What may be said of a claim: value and share in per cent, or value, ranks and GPU plainly."""
    fraction = claim.unit == "fraction"
    if in_percent:
        yield from (100 * claim.value,) if fraction else ()
        yield from (100 * claim.share_of_step,) if claim.share_of_step is not None else ()
        return
    yield from () if fraction else (claim.value,)
    yield from claim.ranks
    if isinstance(claim.params.get("gpu"), int):
        yield claim.params["gpu"]


def step(arguments: argparse.Namespace) -> Status:
    """Ask, check, write."""
    settings = validate(json.loads(arguments.settings), Settings, "config")
    report = read_record(arguments.report, Report)
    author = author_of(settings, ANSWERS[arguments.role])
    inputs = {"combined_report.json": read_text(arguments.report)}
    if arguments.role == "launcher":
        catalog = read_catalog(arguments.levers, report.run.run_id, report.foms)
        levers = [one.model_dump(mode="json") for one in catalog.levers] if catalog else []
        inputs["levers.json"] = canonical_json(levers)
        inputs["settings.json"] = canonical_json(settings.model_dump(mode="json"))
        inputs["settings.schema.json"] = canonical_json(Settings.model_json_schema())
    files = {name: text.encode() for name, text in inputs.items()}
    task = Task(read_text(arguments.prompt), files, author.env, ANSWERS[arguments.role])
    answer = ask(author.name, author.command, task, author.timeout_s)
    if arguments.role == "launcher":
        found = proposal(answer.text, settings, report.claims)
        write_text(arguments.out, canonical_json(found))
        return Status("ok", f"{author.name} proposes trial {found['trial']}: {answer.reason}")
    lines, rejected = backed_lines(answer.text, report.claims)
    write_text(arguments.out, "".join(f"{line}\n" for line in lines))
    wrong = [f"{author.name}: {item.entry}: {item.reason}" for item in rejected]
    return ok_or_partial(wrong, f"{len(lines)} lines by {author.name}")


def main() -> None:
    """Command line."""
    cli = parser(__doc__ or "")
    cli.add_argument("--role", choices=sorted(ANSWERS), required=True)
    cli.add_argument("--settings", required=True, help="settings of the run, as JSON")
    cli.add_argument("--prompt", type=Path, required=True, help="agents/<role>.md")
    cli.add_argument("--report", type=Path, required=True, help="combined_report.json")
    cli.add_argument("--levers", type=Path, nargs="*", default=[], help="lever catalogs")
    cli.add_argument("--out", type=Path, required=True, help="settings.json or summary.md")
    run(step, cli.parse_args())


if __name__ == "__main__":
    main()
