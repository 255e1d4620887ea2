"""Which TraceLens an interpreter has. PyPI's `tracelens` is another project of the same name.

pip takes both names for one, so neither the name nor an import tells them apart: the distribution's
console scripts do, with a package `TraceLens` beside them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perfproof.core.command import run_bounded
from perfproof.core.errors import InputError

PYTHON_VARIABLE = "PERFPROOF_TRACELENS_PYTHON"
INSTALL = "pip install git+https://github.com/AMD-AGI/TraceLens.git"
REPORT = "TraceLens_generate_perf_report_pytorch"
COLLECTIVES = "TraceLens_generate_multi_rank_collective_report_pytorch"
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class TraceLens:
    """What was found: AMD's with its scripts, or in `what` why not."""

    python: str
    version: str | None
    scripts: Mapping[str, str]
    what: str


@dataclass(frozen=True)
class Choice:
    """The back end that counts, and why; `found` is AMD's where it is used."""

    used: Literal["tracelens", "builtin"]
    why: str
    found: TraceLens | None


def find_tracelens() -> TraceLens:
    """Ask the interpreter named by `PERFPROOF_TRACELENS_PYTHON`, else the workflow's own."""
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    named = f"the Python that {PYTHON_VARIABLE} names"
    where = named if PYTHON_VARIABLE in os.environ else "the workflow's Python"
    probe = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as empty:
        try:
            ended = run_bounded([python, "-c", probe], Path(empty), os.environ, _TIMEOUT_S)
        except OSError as fault:
            return TraceLens(python, None, {}, f"{where} cannot be started ({fault.strerror})")
    try:
        answer = json.loads(ended.last_line)
        return _judged(python, where, answer["distributions"], answer["module"])
    except (ValueError, KeyError, TypeError):
        said = ended.last_error[:200] or f"exit code {ended.code}"
        return TraceLens(python, None, {}, f"{where} cannot say what it has ({said})")


def _judged(python: str, where: str, distributions: list[Any], module: bool) -> TraceLens:
    ours = [d for d in distributions if str(d["scripts"].get(REPORT, "")).startswith("TraceLens.")]
    if ours and module:
        version = str(ours[0]["version"])
        return TraceLens(python, version, ours[0]["scripts"], f"{where} has TraceLens {version}")
    if ours:
        what = f"TraceLens in {where} is damaged: its package TraceLens is gone"
    elif distributions:
        one = distributions[0]
        what = f"'tracelens' {one['version']} in {where} is another project ({one['summary']!r})"
    elif module:
        what = f"{where} has a package TraceLens that nothing installed, so it cannot be identified"
    else:
        what = f"{where} has no TraceLens"
    return TraceLens(python, None, {}, what)


def choose(asked: Literal["auto", "tracelens", "builtin"]) -> Choice:
    """The back end for a setting. Raises InputError where AMD's TraceLens is asked for in vain."""
    if asked == "builtin":
        return Choice("builtin", "asked for", None)
    found = find_tracelens()
    if found.version is not None:
        why = "asked for" if asked == "tracelens" else "auto"
        return Choice("tracelens", f"{why}: {found.what}", found)
    if asked == "tracelens":
        expected = f"AMD's: {INSTALL} (not PyPI's 'tracelens')"
        raise InputError("config", found.what, expected, "trace_backend")
    return Choice("builtin", f"auto: {found.what}", None)
