from __future__ import annotations

from perfproof.schema.base import Problem
from perfproof.schema.traces import (
    ComparedRow,
    ComparedSide,
    ComparedTotal,
    Table,
    TraceComparison,
)
from perfproof.traces.compare_page import page


def row(kernel, where="both"):
    return ComparedRow(
        key={"kernel": kernel},
        where=where,
        a_count=2,
        b_count=0.5,
        a_us=1234.5,
        b_us=0,
        difference_us=-1234.5,
        share_of_a=-0.125,
    )


def comparison(rows, **more):
    side = ComparedSide(files=["a.json"], devices=[], steps=[[3, 4]], time_us=10)
    return TraceComparison(
        basis="per step",
        basis_reason="why",
        a=side,
        b=side,
        totals=[ComparedTotal(name="gpu_events", a=1, b=2, difference=1, share_of_a=None)],
        largest={"kernels": rows},
        tables={"kernels": Table(file="kernels.csv", rows=len(rows) + 12, blake3="")},
        **more,
    )


def test_rows_and_what_is_left_out():
    text = page(comparison([row("k", "only_a")]))
    assert "| `k` | 1,234.5 | 0.0 | -1,234.5 | -12.50% | 2 | 0.5 | only A |" in text
    assert "3 more in `kernels.csv`." in text
    assert "- A: `a.json` (device not recorded; steps counted: 2)" in text
    assert "| gpu_events | 1.0 | 2.0 | +1.0 |  |" in text


def test_names_cannot_break_the_table():
    text = page(comparison([row("a|b`c\n" + "x" * 200)]))
    assert "| `a\\|b'c " in text
    assert "…`" in text


def test_problems_are_listed():
    problems = [Problem(where="b.json", what="broken")]
    assert "- `b.json`: broken" in page(comparison([], problems=problems))
