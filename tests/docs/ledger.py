"""Reads the tables of `docs/lessons.md` and `docs/parity.md`, and says what is wrong with a row."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from perfproof.schema.config import Recipe

ROOT = Path(__file__).resolve().parents[2]
STAGES = frozenset({"telemetry", "autotune", "traces", "report", "bundle", "scaling"})
ROW = re.compile(r"^\| *([A-Z]?\d+) *\|")
SPAN = re.compile(r"`([^`]+)`")
ASIDE = re.compile(r" *\([^)]*\)")
STAGE = re.compile(r"\bplanned: ([a-z]+(?:, [a-z]+)*)")


@dataclass(frozen=True)
class Row:
    """One line of a ledger: identifier, text, state, and where it is kept."""

    id: str
    text: str
    state: str
    where: str


def rows(path: Path) -> list[Row]:
    """All ledger rows of a Markdown file, in order."""
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if ROW.match(line))
    return [Row(*_cells(line)) for line in lines]


def counts(found: Iterable[Row], states: tuple[str, ...]) -> str:
    """The sentence that the page must hold: how many rows are in each state."""
    tally = Counter(row.state for row in found)
    parts = [f"{tally[state]} {state}" for state in states]
    return f"Of {tally.total()} rows: {', '.join(parts)}."


def faults(row: Row, kept: str) -> list[str]:
    """What is wrong with a row; `kept` is the word of its ledger for rows that work today."""
    wrong = [f"{row.id}: {text}" for text in _state_faults(row, kept)]
    return wrong + [f"{row.id}: {span}: {text}" for span in _spans(row) if (text := broken(span))]


def named_tests(row: Row) -> list[str]:
    """The `file::test` references of a row."""
    return [span for span in _spans(row) if "::" in span]


def named_stages(row: Row) -> list[str]:
    """The stages that a row waits for."""
    listed = STAGE.findall(ASIDE.sub("", row.where))
    return [stage for stages in listed for stage in stages.split(", ")]


def broken(span: str) -> str | None:
    """Why a span names no path, test, target, module or recipe key; None when it names one."""
    if "::" in span:
        return _no_test(span)
    if "/" in span or (ROOT / span).exists():
        return None if (ROOT / span).exists() else "no such file"
    if span.startswith("perfproof."):
        return None if _imports(span) else "cannot be imported"
    if span in targets() or recipe_key(span):
        return None
    return "neither a path, a test, a target, a module nor a recipe key"


@cache
def targets() -> frozenset[str]:
    """Names of all rules."""
    files = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())
    return frozenset(re.findall(r"^\s*(?:rule|checkpoint) +(\w+)", text, re.MULTILINE))


def recipe_key(dotted: str) -> bool:
    """Whether `training.batch_size` and the like name a field of the recipe."""
    model: type[BaseModel] = Recipe
    *outer, last = dotted.split(".")
    for name in outer:
        inner = getattr(model.model_fields.get(name), "annotation", None)
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return False
        model = inner
    return last in model.model_fields


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _spans(row: Row) -> list[str]:
    return SPAN.findall(row.where)


def _state_faults(row: Row, kept: str) -> Iterable[str]:
    stages, spans = named_stages(row), _spans(row)
    unknown = sorted(set(stages) - STAGES)
    if unknown:
        yield f"unknown stage {', '.join(unknown)}"
    needs_now, needs_stage = row.state in {kept, "partly"}, row.state in {"planned", "partly"}
    if row.state == "not taken" and not re.match(r"not taken: \w", row.where):
        yield "a row not taken needs its reason"
    if row.state not in {kept, "partly", "planned", "not taken"}:
        yield f"unknown state {row.state!r}"
    if needs_now and not spans:
        yield f"{row.state}, but nothing is named"
    if needs_stage != bool(stages):
        yield f"{row.state}, but stages named: {', '.join(stages) or 'none'}"


def _no_test(span: str) -> str | None:
    file, *names = span.split("::")
    if not (ROOT / file).is_file():
        return "no such file"
    body: list[ast.stmt] = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    for name in names:
        found = [node for node in body if getattr(node, "name", None) == name]
        if not found:
            return f"no {name} in {file}"
        body = getattr(found[0], "body", [])
    return None


def _imports(dotted: str) -> bool:
    module, _, name = dotted.rpartition(".")
    try:
        importlib.import_module(dotted)
    except ModuleNotFoundError:
        try:
            return hasattr(importlib.import_module(module), name)
        except ModuleNotFoundError:
            return False
    return True
