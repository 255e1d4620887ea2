"""Who claimed what and how often it held, in the record and on the pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.report import html, markdown
from perfproof.report.combine import combine
from perfproof.report.view import build
from perfproof.schema.authors import AuthorRecord
from perfproof.schema.base import Reason
from perfproof.schema.report import Report
from tests.report.conftest import RUN

OTHER = "openai:m-1"


def make_record(**changes: Any) -> AuthorRecord:
    values: dict[str, Any] = {
        "run_id": RUN, "source": "trace", "author": OTHER, "status": "ok", "reason": "three limits",
        "accepted": ["TR-501"], "writes_confined": True, "prompt_blake3": "ab", "inputs": {},
        "rejected": [{"entry": "claims.2", "reason": "evidence: a number without evidence"}],
    }  # fmt: skip
    return AuthorRecord.model_validate(values | changes)


def report_with(parts: Any, *records: AuthorRecord) -> Report:
    return combine(
        parts.inventory, parts.foms, parts.traces, parts.telemetry, parts.verified(),
        parts.manifest, parts.profiled_step_s, authors=records,
    )  # fmt: skip


def test_each_author_is_scored_by_what_was_judged(parts: Any, make: Any) -> None:
    parts.claims = [
        make.claim("TR-001"),
        make.claim("TR-501", author=OTHER),
        make.claim("TR-502", author=OTHER, verdict="refuted"),
        make.claim("TR-503", author=OTHER, verdict="refuted"),
        make.claim("TR-504", author=OTHER, verdict="inconclusive"),
        make.claim("TE-501", author="command:x", verdict="inconclusive"),
    ]
    scores = {score.author: score for score in report_with(parts, make_record()).authors}
    assert list(scores) == ["analyst", "command:x", OTHER]
    other = scores[OTHER]
    assert (other.claims, other.verified, other.refuted, other.inconclusive, other.rejected) == (
        4, 1, 2, 1, 1,
    )  # fmt: skip
    assert other.right == pytest.approx(1 / 3)
    assert scores["analyst"].right == 1.0
    assert scores["command:x"].reasons == {"right": Reason.TOO_FEW_VALUES}


def test_one_whose_entries_were_all_rejected_is_named(parts: Any) -> None:
    scores = report_with(parts, make_record(accepted=[])).authors
    assert [(score.author, score.claims, score.rejected) for score in scores] == [
        ("analyst", 1, 0),
        (OTHER, 0, 1),
    ]


def test_the_pages_say_it(parts: Any, make: Any, analysis: Callable[..., Path]) -> None:
    parts.claims = [make.claim("TR-001"), make.claim("TR-501", author=OTHER, verdict="refuted")]
    base = analysis()
    report = report_with(parts, make_record(writes_confined=False))
    view, faults = build(report, parts.traces, base)
    assert faults == []
    for page in (html.page(view), markdown.page(view, "plots")):
        assert "a number without evidence" in page
        assert "three limits" in page
        assert "Its writes could not be confined" in page
        assert "openai:m" in page
    assert view.authors.rows[1][:6] == [OTHER, "1", "0", "1", "0", "1"]


def test_without_another_author_nothing_is_said_of_one(
    parts: Any, analysis: Callable[..., Path]
) -> None:
    view, _ = build(parts.report(), parts.traces, analysis())
    assert (view.rejections, view.authors_note) == (None, "")
    assert [row[0] for row in view.authors.rows] == ["analyst"]


def test_a_record_of_another_run_is_refused(parts: Any) -> None:
    with pytest.raises(InputError, match="run_id"):
        report_with(parts, make_record(run_id="x/y"))
