"""What the pages say about the trace back end, and TraceLens's number beside a claim's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfproof.report import html, markdown
from perfproof.report.combine import combine
from perfproof.report.view import build
from perfproof.schema.base import Problem
from perfproof.schema.report import Report
from perfproof.schema.tracelens import TraceBackend
from tests.report.conftest import RUN

WHY = "968 of 3653 GPU events have no recorded launch"


def make_backend(**changes: Any) -> TraceBackend:
    rows = [
        {"name": "busy_time", "all_ms": 84.0, "linked_ms": 56.1, "tracelens_ms": 56.1},
        {"name": "idle_time", "all_ms": 2.6, "linked_ms": 0.4, "tracelens_ms": 0.4},
        {"name": "total_time", "all_ms": 86.6, "linked_ms": 56.5, "tracelens_ms": 56.5},
    ]
    rank = {"rank": 0, "file": "trace_rank0.json.gz", "tables": {}, "timeline": rows,
            "agreement": "definition", "explanation": WHY}  # fmt: skip
    values = {"run_id": RUN, "asked": "auto", "used": "tracelens", "why": "auto: found",
              "version": "0.1.0", "ranks": [rank]}  # fmt: skip
    return TraceBackend.model_validate(values | changes)


def builtin() -> TraceBackend:
    return make_backend(
        used="builtin", why="auto: the workflow's Python has no TraceLens", version=None, ranks=[],
        reasons={"version": "not_applicable"},
    )  # fmt: skip


def report_with(parts: Any, backend: TraceBackend) -> Report:
    return combine(
        parts.inventory, parts.foms, parts.traces, parts.telemetry, parts.verified(),
        parts.manifest, parts.profiled_step_s, backend=backend,
    )  # fmt: skip


@pytest.mark.parametrize("render", [html.page, lambda view: markdown.page(view, "plots")])
def test_both_definitions_stand_side_by_side(
    parts: Any, analysis: Callable[..., Path], render: Callable[..., str]
) -> None:
    base = analysis()
    view, faults = build(report_with(parts, make_backend()), parts.traces, base)
    assert faults == []
    assert view.backend_table is not None
    assert view.backend_table.rows[1][:2] == ["0", "idle"]
    cells = [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in view.backend_table.rows[1]]
    assert cells[2:5] == ["2.600 ms", "400.0 µs", "400.0 µs"]
    page = render(view)
    assert WHY in page
    assert "second opinion" in page


def test_without_it_the_page_says_why(parts: Any, analysis: Callable[..., Path]) -> None:
    base = analysis()
    view, _ = build(report_with(parts, builtin()), parts.traces, base)
    assert view.backend_table is None
    assert view.backend == (
        "All trace numbers are from the built-in tables. TraceLens was not used: auto: the "
        "workflow's Python has no TraceLens."
    )
    assert view.backend in markdown.page(view, "plots")


def test_a_claim_on_idle_time_has_its_number_in_the_note(parts: Any, make: Any) -> None:
    parts.claims = [make.claim("TR-001"), make.claim("TR-002", metric="top_kernel_fraction")]
    report = report_with(parts, make_backend())
    notes = {claim.id: claim.note.replace("\N{NO-BREAK SPACE}", " ") for claim in report.claims}
    assert "TraceLens, over the whole file (56.50 ms) and not the claim's window: 0.71 %, ours " \
        "there 3.0 %" in notes["TR-001"]  # fmt: skip
    assert "TraceLens" not in notes["TR-002"]
    assert report_with(parts, builtin()).claims == parts.report().claims


@pytest.mark.parametrize(("asked", "status"), [("auto", "ok"), ("tracelens", "partial")])
def test_its_faults_are_the_inputs_only_where_it_was_asked_for(
    parts: Any, asked: str, status: str
) -> None:
    problem = Problem(where="trace_rank0.json.gz", what="TraceLens gave no report within 900 s")
    report = report_with(parts, make_backend(asked=asked, problems=[problem.model_dump()]))
    assert report.status == status
    assert (problem in report.problems) == (status == "partial")
