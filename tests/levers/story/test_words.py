"""Gains in words: a number only where a difference was shown."""

from __future__ import annotations

import pytest

from perfproof.levers.story.words import count, hours, interval, shown
from perfproof.report.units import gain
from perfproof.schema.base import Reason
from perfproof.schema.decisions import LeverDecision

N = "\N{NO-BREAK SPACE}"


def _lever(status: str, kind: str = "lever", **values: object) -> LeverDecision:
    names = ("order", "picked_because", "against", "trial", "effect", "interval", "shrunk")
    fields = dict.fromkeys((*names, "p_value", "p_bound")) | values
    reasons = {name: Reason.NOT_APPLICABLE for name, value in fields.items() if value is None}
    return LeverDecision.model_validate(
        {
            "id": "a",
            "kind": kind,
            "status": status,
            "why": "",
            "candidate_runs": 2,
            "best_runs": 3,
            "runs": 5,
            "node_hours": 1.0,
            "measured": [],
            "reasons": reasons,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("lever", "words"),
    [
        (_lever("failed"), ""),
        (_lever("testing", effect=0.1), "~"),
        (_lever("rejected", effect=0.01, interval=(-0.01, 0.03)), "~"),
        (_lever("rejected", effect=-0.1, interval=(-0.2, -0.05)), f"\N{MINUS SIGN}10.0{N}%"),
        (_lever("accepted", effect=0.1, interval=(0.05, 0.2)), f"+10.0{N}%"),
        # A gain that excludes zero at 95 % has not passed the test of a whole loop.
        (_lever("inconclusive", effect=0.1, interval=(0.01, 0.2), p_value=0.02, p_bound=1e-3), "~"),
        (
            _lever("diagnosed", effect=0.1, interval=(0.05, 0.2), p_value=1e-5, p_bound=1e-3),
            f"+10.0{N}%",
        ),
        (_lever("diagnosed", "diagnostic", effect=0.1, interval=(0.05, 0.2)), f"+10.0{N}%"),
    ],
)
def test_a_tilde_where_nothing_was_shown(lever: LeverDecision, words: str) -> None:
    assert shown(lever) == words


def test_signs_and_units() -> None:
    assert gain(0.0) == f"0{N}%"
    assert gain(-0.0012) == f"\N{MINUS SIGN}0.12{N}%"
    assert interval((-0.01, 0.02)) == f"[\N{MINUS SIGN}1.0{N}%, +2.0{N}%]"
    assert interval(None) == ""
    assert hours(1.5, 2) == "≥ 1.50"
    assert (count(1, "run"), count(2, "run")) == ("1 run", "2 runs")
