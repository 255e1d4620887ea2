"""Verifiers share no code with the stages whose numbers they judge."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SHARED = ("perfproof.schema", "perfproof.core")
VOCABULARY = {
    "perfproof", "perfproof.claims", "perfproof.claims.metrics",
    "perfproof.claims.kernel_groups", "perfproof.claims.metrics_trace",
    "perfproof.claims.metrics_telemetry",
    "perfproof.claims.vocabulary",
}  # fmt: skip
VERIFIERS = ("perfproof.claims.verify_trace", "perfproof.claims.verify_telemetry")


@pytest.mark.parametrize("verifier", VERIFIERS)
def test_what_a_verifier_loads(verifier: str) -> None:
    """In a fresh process: schema, core, the vocabulary and its own modules; no NumPy or pandas."""
    code = f"import {verifier}, sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    foreign = [
        module
        for module in loaded
        if module.split(".")[0] == "perfproof"
        and not module.startswith((*SHARED, "perfproof.claims.verifier", *VERIFIERS))
        and module not in VOCABULARY
    ]
    assert foreign == []
    assert not {"numpy", "pandas", "msgspec", "orjson"} & set(loaded)


def test_the_vocabulary_computes_nothing(root: Path) -> None:
    """Data only: its modules import no code but the schema and each other."""
    for module in sorted(VOCABULARY - {"perfproof", "perfproof.claims"}):
        path = root / "scripts" / Path(*module.split(".")).with_suffix(".py")
        names = {
            node.module or ""
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        ours = {name for name in names if name.startswith("perfproof")}
        assert all(name.startswith("perfproof.schema") or name in VOCABULARY for name in ours)


def test_analysts_do_not_use_the_verifier(root: Path) -> None:
    folder = root / "scripts" / "perfproof" / "claims"
    for path in folder.glob("*.py"):
        if not path.name.startswith("verify"):
            assert "claims.verifier" not in path.read_text(encoding="utf-8"), path.name
