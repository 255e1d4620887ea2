from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from perfproof.traces.clock import to_ns

# Up to the year 2115 in microseconds.
numbers = st.decimals(
    min_value=-(10**15), max_value=46 * 10**14, places=3, allow_nan=False, allow_infinity=False
)


def exact(text: str) -> int:
    return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))


@settings(deadline=None)
@given(st.lists(st.one_of(numbers.map(str), st.integers(0, 46 * 10**14).map(str)), min_size=1))
def test_reads_every_digit(texts):
    values, good = to_ns([Raw(text.encode()) for text in texts])
    assert good.all()
    assert values.tolist() == [exact(text) for text in texts]


def test_keeps_the_nanoseconds_that_a_float_loses():
    text = b"1712195495505543.226"
    values, _ = to_ns([Raw(text)])
    assert values.tolist() == [1712195495505543226]
    assert round(float(text) * 1000) != 1712195495505543226


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", 5000),
        ("5.", 5000),
        ("0.5", 500),
        ("-1.25", -1250),
        ('"12.5"', 12500),
        ("1e3", 1000000),
        ("2.0005", 2000),
        ("2.0015", 2002),
        ("0000000000000000007", 7000),
    ],
)
def test_odd_spellings(text, expected):
    values, good = to_ns([Raw(b"1.5"), Raw(text.encode()), Raw(b"2")])
    assert good.all()
    assert values.tolist() == [1500, expected, 2000]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        '"x"',
        "[1,2]",
        "{}",
        "1e30",
        "1e999999",
        "1e999990",
        "NaN",
        "-Infinity",
        "9" * 9000,
        "4611686018427387.904",
        '"1,5"',
        "1.2.3",
    ],
)
def test_what_is_no_time_is_said_to_be_none(text):
    values, good = to_ns([Raw(b"1.5"), Raw(text.encode()), Raw(b"2")])
    assert good.tolist() == [True, False, True]
    assert values.tolist() == [1500, 0, 2000]


def test_nothing():
    values, good = to_ns([])
    assert values.size == good.size == 0
