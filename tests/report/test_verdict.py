"""The verdict sentence: a number with its unit, the largest verified bottleneck, or why not."""

from __future__ import annotations

from typing import Any

import pytest

from perfproof.report.verdict import CLASS_WORDS
from perfproof.schema.base import Reason
from perfproof.schema.claims import BottleneckClass


def _plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_number_and_largest_bottleneck(parts: Any, make: Any) -> None:
    parts.claims = [
        make.claim("TR-001", 0.2),
        make.claim("TR-002", 0.57, **{"class": "comm_xgmi"}),
        make.claim("TR-003", 0.9, verdict="refuted"),
    ]
    assert _plain(parts.report().verdict) == (
        "Throughput 312.5 samples/s; largest verified bottleneck: communication inside the node, "
        "up to 57.0 % of step time (TR-002)."
    )


def test_a_missing_figure_is_told_with_its_reason(parts: Any, make: Any) -> None:
    primary = make.changed(parts.foms.primary, value=Reason.BATCH_UNKNOWN)
    parts.foms = make.changed(parts.foms, primary=primary.model_dump())
    assert parts.report().verdict.startswith("No throughput: neither log nor configuration says")


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([], "no bottleneck was claimed."),
        ([{"share": None}], "1 verified claim, none with a known share of step time."),
        ([{"verdict": "refuted"}], "no verified bottleneck (1 claim refuted or inconclusive)."),
        (
            [{"verdict": "refuted"}, {"verdict": "inconclusive"}],
            "no verified bottleneck (2 claims refuted or inconclusive).",
        ),
    ],
)
def test_no_ranked_claim(parts: Any, make: Any, claims: list[Any], expected: str) -> None:
    parts.claims = [make.claim(f"TR-00{i}", **claim) for i, claim in enumerate(claims)]
    assert parts.report().verdict.endswith("; " + expected)


def test_without_trace(parts: Any, make: Any) -> None:
    parts.claims = []
    parts.traces = make.changed(parts.traces, ranks=[])
    assert "no bottleneck can be named without a readable trace." in parts.report().verdict
    parts.claims = [make.claim("TE-001")]
    assert parts.report().verdict.endswith("(TE-001); no readable trace.")


def test_a_trace_without_device_timeline_is_told(parts: Any, make: Any) -> None:
    rank = make.rank(gpu_events=0, window_kind="cpu_span")
    parts.traces = make.changed(parts.traces, ranks=[rank.model_dump()])
    assert parts.report().verdict.endswith("(TR-001); no device timeline.")


def test_a_run_that_has_not_ended(parts: Any, make: Any) -> None:
    parts.manifest = make.manifest(state="running", exit_code=Reason.RUN_INCOMPLETE)
    assert parts.report().verdict.startswith("The run has not ended. Throughput")


def test_every_class_has_words() -> None:
    assert set(CLASS_WORDS) == set(BottleneckClass)
