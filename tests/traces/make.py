"""From a trace made by hand to the context and tables under test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from perfproof.core.files import digest_file
from perfproof.traces.columns import build
from perfproof.traces.context import Context, make_context
from perfproof.traces.csvfile import Rows
from perfproof.traces.decode import Decoded, Document
from perfproof.traces.model import Trace
from tests.traces.builder import TraceBuilder


def trace_of(builder: TraceBuilder) -> Trace:
    """Columns of a hand-made trace."""
    document = msgspec.json.decode(builder.text().encode(), type=Document)
    return build(Decoded(document), "hand.json")


def context_of(builder: TraceBuilder, rank: int = 0) -> Context:
    """Context of a hand-made trace."""
    return make_context(trace_of(builder), rank)


def records(table: Rows) -> list[dict[str, Any]]:
    """Rows as dictionaries."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def by(table: Rows, column: str) -> dict[Any, dict[str, Any]]:
    """Rows as dictionaries, by the value of one column."""
    return {row[column]: row for row in records(table)}


def write_inventory(folder: Path, paths: list[str], ranks: dict[str, int] | None = None) -> Path:
    """An inventory of trace files in `folder`."""
    ranks = ranks or {}
    artifacts = [
        {
            "path": path,
            "role": "trace",
            "rank": ranks.get(path),
            "size_bytes": (folder / path).stat().st_size if (folder / path).exists() else 0,
            "blake3": digest_file(folder / path) if (folder / path).exists() else "",
            "reasons": {} if path in ranks else {"rank": "not_recorded"},
        }
        for path in sorted(paths)
    ]
    data = {"run_id": "hand/baseline", "root": str(folder), "artifacts": artifacts}
    target = folder / "inventory.json"
    target.write_text(json.dumps(data))
    return target
