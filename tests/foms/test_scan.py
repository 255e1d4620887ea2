"""Vectorised reading of fields."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.foms import scan


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([b"epoch:", b"epoch", b"eepoch:x", b" ", b":", b"\n"])))
def test_find_all_finds_what_bytes_find_does(parts: list[bytes]) -> None:
    data = b"".join(parts)
    expected = [at for at in range(len(data)) if data.startswith(b"epoch:", at)]
    assert scan.find_all(scan.text_of(data), b"epoch:", anchor=5).tolist() == expected


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 10**9 - 1), min_size=1))
def test_integers_round_trip(values: list[int]) -> None:
    data = b"".join(b"n=   %d," % value for value in values)
    text = scan.text_of(data)
    starts = scan.skip_spaces(text, scan.find_all(text, b"n=", anchor=1) + 2)
    found, has_number, at = scan.integer(text, starts)
    assert found.tolist() == values
    assert has_number.all()
    assert (text[at] == ord(",")).all()


def test_no_digit_is_no_integer_and_margin_is_safe() -> None:
    text = scan.text_of(b"n=x n=")
    starts = scan.find_all(text, b"n=", anchor=1) + 2
    assert scan.integer(text, starts)[1].tolist() == [False, False]


def test_literal_says_where_a_word_stands() -> None:
    text = scan.text_of(b"abcabd")
    stands, behind = scan.literal(text, np.array([0, 3]), b"abc")
    assert stands.tolist() == [True, False]
    assert behind.tolist() == [3, 6]
