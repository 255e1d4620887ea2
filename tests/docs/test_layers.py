"""Stages meet in files only: none imports another. `docs/design.md` says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.ledger import ROOT

PACKAGE = ROOT / "scripts" / "perfproof"
SHARED = {"schema", "core"}
# The optimizer loop sits above all stages: it may use them, none may use it.
ABOVE = "levers"
# What the Snakefile asks needs to know which files a run has and what its recipe resolves to.
PLAN = PACKAGE / "core" / "dag.py"
STAGES = sorted(p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name[0] not in "._")


def imported(path: Path) -> Iterator[str]:
    """Packages of this repository that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.startswith("perfproof."):
                yield name.split(".")[1]


def test_imports_are_seen() -> None:
    assert {"artifacts", "core", "schema", "training"} <= set(imported(PLAN))


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != ABOVE])
def test_a_stage_imports_no_other(stage: str) -> None:
    files = [path for path in sorted((PACKAGE / stage).rglob("*.py")) if path != PLAN]
    foreign = set(STAGES) - SHARED - {stage}
    found = {str(path.relative_to(ROOT)): set(imported(path)) & foreign for path in files}
    assert {path: others for path, others in found.items() if others} == {}
