"""`foms.csv`: one row a run, in the order in which they were made."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from perfproof.levers.story.record import Loop, Row, rows
from perfproof.report.units import clip
from perfproof.schema.base import Reason
from perfproof.schema.loop import ProofFinding

COLUMNS = (
    "index",
    "trial",
    "rep",
    "lever",
    "role",
    "ending",
    "cause",
    "metric",
    "value",
    "unit",
    "final_loss",
    "non_finite_count",
    "differs",
    "proof_seen",
    "node_list",
    "node_hours",
    "null_because",
)
# What a spreadsheet takes for the start of a formula.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_TEXT_LENGTH = 4_000


def table(loop: Loop) -> str:
    """The whole file. An empty cell is a null; `null_because` says why."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    spec = loop.explored.spec
    for row in rows(loop):
        writer.writerow(_cells(row, spec.metric, spec.unit))
    return stream.getvalue()


def _cells(row: Row, metric: str, unit: str) -> list[str]:
    result = row.result
    null = {k: v.value for k, v in sorted(result.reasons.items()) if v is not Reason.NOT_APPLICABLE}
    reasons = "; ".join(f"{key}: {value}" for key, value in null.items())
    return [
        str(row.index),
        safe(result.measurement.trial),
        str(result.measurement.rep),
        safe(row.lever or ""),
        row.role,
        result.ending,
        safe(result.cause or ""),
        safe(metric),
        _number(result.value),
        safe(unit),
        _number(result.final_loss),
        _number(result.non_finite_count),
        safe("; ".join(result.differs)),
        proof_seen(row),
        safe(" ".join(result.node_list or [])),
        _number(result.node_hours),
        safe(reasons),
    ]


def safe(text: str) -> str:
    """`text` on one line, such that no spreadsheet computes it."""
    line = clip(text, _TEXT_LENGTH)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line


def _number(value: float | int | None) -> str:
    return "" if value is None else repr(value)


def proof_seen(row: Row) -> str:
    """`yes`, `no`, `unknown`, or nothing where no proof was looked for."""
    wanted = [f for f in row.result.proof if row.role != "candidate" or f.lever == row.lever]
    return _all_seen(wanted)


def _all_seen(findings: Sequence[ProofFinding]) -> str:
    if not findings:
        return ""
    if any(finding.seen is False for finding in findings):
        return "no"
    return "unknown" if any(finding.seen is None for finding in findings) else "yes"
