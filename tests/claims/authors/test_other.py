"""Launcher and synthesizer: proposals within bounds, summaries without a number of their own."""

from __future__ import annotations

import json

import pytest

from perfproof.claims.authors.other import MOST_LINES, backed_lines, proposal
from perfproof.core.errors import InputError
from perfproof.schema.config import Settings
from tests.report.conftest import make_claim

CLAIMS = [
    make_claim("TR-001", 0.4, value=0.417, levers=["compile"]),
    make_claim("TR-002", 0.125, value=12.34, unit="µs", ranks=[3], levers=["num_workers_2"]),
    make_claim("TE-001", None, value=0.9, params={"gpu": 5}, ranks=[], levers=[]),
]


@pytest.mark.parametrize(
    "line",
    [
        "The GPU idles 41.7 % of the window [TR-001].",
        "The GPU idles 42 % of the window: up to 40% could be had back [TR-001].",
        "On rank 3 a start takes 12.3 µs, up to 12.5 % [TR-002].",
        "GPU 5 is busy 90 % [TE-001], and idles 41.7 % [TR-001].",
        "Try torch.compile in bf16 [TR-001, TR-002].",
    ],
)
def test_backed_lines_stay(line: str) -> None:
    assert backed_lines(line, CLAIMS) == ([line], [])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("The GPU idles a lot.", "names no claim"),
        ("The GPU idles 41.7 % [TR-009].", "TR-009 is no verified claim"),
        ("The GPU idles 43 % [TR-001].", "43 % is no number of TR-001"),
        ("The GPU idles 41.72 % [TR-001].", "41.72 % is no number of TR-001"),
        ("A start takes 12.3 µs [TR-001].", "12.3 is no number of TR-001"),
        ("Twice as fast: 2x [TR-001].", "2 is no number of TR-001"),
    ],
)
def test_a_line_with_a_number_of_its_own_goes(line: str, says: str) -> None:
    kept, rejected = backed_lines(f"good [TR-001]\n\n{line}", CLAIMS)
    assert kept == ["good [TR-001]"]
    assert [(item.entry, item.reason) for item in rejected] == [("line 2", says)]


def test_a_summary_is_short() -> None:
    kept, rejected = backed_lines("idle [TR-001]\n" * (MOST_LINES + 2), CLAIMS)
    assert (len(kept), len(rejected)) == (MOST_LINES, 2)


def test_a_proposal_within_its_bounds() -> None:
    found = proposal(json.dumps({"trial": "bf16+compile"}), Settings(trial="bf16"), CLAIMS)
    assert found == {"trial": "bf16+compile", "nodes": 1, "repetition": 0}
    assert proposal('{"repetition": 1}', Settings(), CLAIMS)["repetition"] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("compile", "not JSON"),
        ("[]", "no object"),
        ('{"cluster": "big"}', "cluster; expected only trial, nodes, repetition"),
        ('{"nodes": 0}', "nodes: found 0"),
        ('{"trial": "compile+num_workers_2"}', "at most one lever more"),
        ('{"trial": "magic"}', "which a verified claim names"),
        ('{"trial": "num_workers_2+compile"}', "once each, sorted"),
        ('{"trial": "compile+compile"}', "once each, sorted"),
    ],
)
def test_a_proposal_beyond_its_bounds_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as fault:
        proposal(text, Settings(), CLAIMS)
    assert says in str(fault.value)
