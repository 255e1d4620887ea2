"""Recorded public traces beside the repository, read once per test module."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perfproof.traces.columns import read_trace
from perfproof.traces.context import Context, make_context
from perfproof.traces.csvfile import Rows
from perfproof.traces.identity import check_single
from perfproof.traces.rank_work import make_tables
from tests.conftest import SHARED_DATA

TRACES = SHARED_DATA / "traces"
INDEX = TRACES / "INDEX.json"
ENTRIES: list[dict[str, Any]] = json.loads(INDEX.read_text())["traces"] if INDEX.is_file() else []


@dataclass(frozen=True)
class Recorded:
    """One recorded trace with its tables and its entry of the index."""

    name: str
    index: dict[str, Any]
    context: Context
    tables: dict[str, Rows]


def short_name(entry: dict[str, Any]) -> str:
    """File name without its endings."""
    name = Path(entry["file"]).name
    return name.removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")


def read_recorded(entry: dict[str, Any] | None) -> Recorded:
    """Read one trace of the index; skips the test where there are none."""
    if entry is None:
        pytest.skip(f"no recorded traces at {TRACES}")
    trace = read_trace(TRACES / entry["file"], entry["file"])
    check_single(trace)
    context = make_context(trace, entry["rank"] or 0)
    return Recorded(short_name(entry), entry, context, make_tables(context))
