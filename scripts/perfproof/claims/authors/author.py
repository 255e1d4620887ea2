"""Claims by another author: a program, or a model behind an OpenAI-compatible endpoint.

A bad answer costs only itself: the claims file is written in any case, and the record says why it
holds what it holds.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from perfproof.claims.authors import confine
from perfproof.claims.authors.accept import Terms, accept
from perfproof.claims.authors.contract import ANSWER, Task, ask, without_key
from perfproof.claims.authors.inputs import citable, given, sound_ranks
from perfproof.claims.authors.plan import check
from perfproof.claims.catalogs import read_catalog
from perfproof.core.errors import InputError
from perfproof.core.files import digest_bytes, read_record, read_text, validate, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.schema.authors import AuthorRecord, Rejection
from perfproof.schema.base import Problem
from perfproof.schema.claims import Claim, ClaimSet, Source
from perfproof.schema.config import Settings
from perfproof.schema.foms import Foms
from perfproof.schema.run import Inventory
from perfproof.schema.traces import TraceSummary

_PACKAGES = Path(__file__).resolve().parents[3]
# Numbers of its claims: those of the rules begin at 1.
CLAIMING_FROM, CHECKING_FROM = 501, 701


@dataclass(frozen=True)
class Author:
    """Who is asked, and how it is started."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str]
    timeout_s: float


def author_of(settings: Settings, answer: str = ANSWER) -> Author:
    """The author that the settings name, and its output. Raises InputError where they name none."""
    check(settings)
    timeout_s = settings.analyst_timeout_s
    if settings.analyst == "command":
        return Author(*_program(settings.analyst_command), {}, timeout_s)
    if settings.analyst == "openai":
        options = ("--url", settings.analyst_url, "--model", settings.analyst_model,
                   "--answer", answer)  # fmt: skip
        command = (sys.executable, "-m", "perfproof.claims.authors.openai_client", *options)
        env = {"PYTHONPATH": str(_PACKAGES), "PYTHONDONTWRITEBYTECODE": "1"}
        name = f"openai:{settings.analyst_model}"
        return Author(name, (*command, "--timeout-s", str(timeout_s)), env, timeout_s)
    raise InputError("config", "'rules'", "'command' or 'openai'", "analyst")


def _program(command: str) -> tuple[str, tuple[str, ...]]:
    """Name and words of a command line; it starts elsewhere, so paths of files become absolute."""
    words = shlex.split(command)
    files = [word for word in words if Path(word).is_file()]
    name = Path(files[-1] if files else words[0]).name
    absolute = tuple(str(Path(w).absolute()) if w in files else w for w in words)
    return f"command:{name}", absolute


def _in_role(author: Author, role: str, source: Source) -> Author:
    """Another role than the analyst's is part of the name: each is judged by itself."""
    usual = role == f"{source.value}_analyst"
    return author if usual else replace(author, name=f"{author.name} as {role}")


def claims_by(
    author: Author, prompt: str, inputs: dict[str, bytes], terms: Terms
) -> tuple[ClaimSet, AuthorRecord]:
    """Ask, and take what is a claim of this run."""
    claims: list[Claim] = []
    rejected: list[Rejection] = []
    problems: list[Problem] = []
    task = Task(prompt, inputs, author.env)
    status, reason = "fail", ""
    try:
        answer = ask(author.name, author.command, task, author.timeout_s)
        status, reason = answer.status, answer.reason
        claims, rejected = accept(answer.text, terms)
    except InputError as fault:
        status, reason = "fail", without_key(str(fault))
        problems = [Problem(where=f"authors/{terms.source.value}.json", what=reason)]
    record = AuthorRecord(
        run_id=terms.run_id,
        source=terms.source,
        author=author.name,
        status=cast(Literal["ok", "partial", "fail"], status),
        reason=reason,
        accepted=[claim.id for claim in claims],
        rejected=rejected,
        writes_confined=confine.available(),
        prompt_blake3=digest_bytes(prompt.encode()),
        inputs=task.digests(),
        problems=problems,
    )
    found = ClaimSet(run_id=terms.run_id, source=terms.source, claims=claims, problems=problems)
    return found, record


def step(arguments: argparse.Namespace) -> Status:
    """Read what the author gets, ask it, write claims and record."""
    source = Source(arguments.source)
    settings = validate(json.loads(arguments.settings), Settings, "config")
    author = _in_role(author_of(settings), arguments.prompt.stem, source)
    inventory = read_record(arguments.inventory, Inventory)
    traces = read_record(arguments.traces, TraceSummary)
    foms = read_record(arguments.foms, Foms)
    catalog = read_catalog(arguments.levers, inventory.run_id, foms)
    inputs = given(source, arguments.foms.parent, inventory, traces, catalog)
    if arguments.claims:
        inputs[f"claims/{source.value}.json"] = read_text(arguments.claims).encode()
    terms = Terms(
        author=author.name,
        run_id=inventory.run_id,
        source=source,
        files=citable(inputs, source),
        ranks=sound_ranks(source, traces),
        levers=frozenset(lever.id for lever in catalog.levers) if catalog else frozenset(),
        first_number=CHECKING_FROM if arguments.claims else CLAIMING_FROM,
    )
    found, record = claims_by(author, read_text(arguments.prompt), inputs, terms)
    write_record(arguments.out, found)
    write_record(arguments.record, record)
    wrong = [p.what for p in record.problems]
    wrong += [f"{author.name}: {r.entry}: {r.reason}" for r in record.rejected]
    return ok_or_partial(wrong, f"{len(found.claims)} claims by {author.name}")


def main() -> None:
    """Command line."""
    cli = parser(__doc__ or "")
    cli.add_argument("--source", choices=[s.value for s in Source], required=True)
    cli.add_argument("--settings", required=True, help="analyst and its options, as JSON")
    cli.add_argument("--prompt", type=Path, required=True, help="agents/<source>_analyst.md")
    cli.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    cli.add_argument("--traces", type=Path, required=True, help="tables/trace_summary.json")
    cli.add_argument("--foms", type=Path, required=True, help="foms.json")
    cli.add_argument("--levers", type=Path, nargs="*", default=[], help="lever catalogs")
    cli.add_argument("--claims", type=Path, help="claims that a verifier role looks at")
    cli.add_argument("--out", type=Path, required=True, help="claims/<source>_author.json")
    cli.add_argument("--record", type=Path, required=True, help="authors/<source>.json")
    run(step, cli.parse_args())


if __name__ == "__main__":
    main()
