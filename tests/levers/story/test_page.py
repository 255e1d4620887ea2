"""Markdown parts: text shows literally, structure stays."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from perfproof.levers.story.page import bullets, codes, document, grid, heading, joined, strong


@given(st.text())
def test_a_cell_cannot_leave_its_table(text: str) -> None:
    _, _, row = grid(["a", "b"], [[text, "x"]]).split("\n")
    assert len(re.findall(r"(?<!\\)\|", row)) == 3


@given(st.text(min_size=1))
def test_text_brings_no_markup(text: str) -> None:
    line = joined(text, " ", strong("b"))
    assert "\n" not in line
    inner = line.removesuffix(" **b**")
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>`*_\[\]|]", inner)


def test_markup_is_kept_and_the_rest_escaped() -> None:
    assert joined("a_b ", codes(["c_d", "e"])) == "a\\_b `c_d`, `e`"
    assert heading(2, "x # y") == "## x \\# y"
    assert bullets([Markup("**a**"), "- b"]) == "- **a**\n- \\- b"
    assert document(["a", "", "b"]) == "a\n\nb\n"
    assert grid(["gain"], [["~"]]).endswith("| ~ |")
