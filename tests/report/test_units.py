"""Numbers for people."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.report.units import (
    GROUP,
    Missing,
    allowed,
    clip,
    missing,
    number,
    percent,
    quantity,
    time_scale,
)
from perfproof.schema.base import Reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.0, "0"),
        (7, "7"),
        (1234567, f"1{GROUP}234{GROUP}567"),
        (1234.5678, f"1{GROUP}235"),
        (0.00123456, "0.001235"),
        (-2.5, "−2.500"),
        (1.5e-7, "1.500×10⁻⁷"),
        (2.5e12, "2.500×10¹²"),
    ],
)
def test_number(value: float, expected: str) -> None:
    assert number(value) == expected


@given(st.floats(min_value=-1e300, max_value=1e300))
def test_number_keeps_four_digits(value: float) -> None:
    text = number(value).replace(GROUP, "").replace("−", "-")
    mantissa, _, power = text.partition("×10")
    exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)
    back = float(f"{mantissa}e{exponent}")
    assert math.isclose(back, value, rel_tol=6e-4)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.0123, "s", "12.30 ms"),
        (75.25, "s", "75.25 s"),
        (42.5, "us", "42.50 µs"),
        (42.5, "µs", "42.50 µs"),
        (3e-8, "s", "30.00 ns"),
        (1.5, "ms", "1.500 ms"),
        (0.0, "s", "0 s"),
        (3 * 2**30, "B", "3.000 GiB"),
        (512, "B", "512.0 B"),
        (0.4321, "fraction", "43.2 %"),
        (61.5, "percent", "61.5 %"),
        (0.0004, "fraction", "0.040 %"),
        (-0.25, "fraction", "−25.0 %"),
        (54.0, "C", "54.00 °C"),
        (12345.0, "J", "12.35 kJ"),
        (312.5, "samples/s", "312.5 samples/s"),
        (12.0, "count", "12"),
    ],
)
def test_quantity(value: float, unit: str, expected: str) -> None:
    assert quantity(value, unit).replace("\N{NO-BREAK SPACE}", " ") == expected


def test_percent_of_nothing_is_zero() -> None:
    assert percent(0.0).startswith("0")
    assert not percent(0.0).startswith("0.0")


def test_tolerance_of_a_fraction_is_in_points() -> None:
    assert allowed(0.02, "fraction") == "±2.00 percentage points"
    assert allowed(2.0, "percent") == allowed(0.02, "fraction")
    assert allowed(0.5, "us").replace("\N{NO-BREAK SPACE}", " ") == "±500.0 ns"


def test_missing_tells_why() -> None:
    text = missing(Reason.NO_LOG)
    assert isinstance(text, Missing)
    assert text == "— (the run left no training log)"


def test_time_scale() -> None:
    assert time_scale(0.2) == (1e-3, "ms")
    assert time_scale(1e-12) == (1e-9, "ns")


@given(st.text(max_size=200), st.integers(min_value=8, max_value=60))
def test_clip_is_one_printable_line(text: str, length: int) -> None:
    short = clip(text, length)
    assert len(short) <= length
    assert "".join(short.split()).isprintable()
    assert len(short.splitlines()) <= 1
    if text.isprintable() and len(text) <= length:
        assert short == text


def test_clip_keeps_spaces_that_do_not_break() -> None:
    assert clip(quantity(1234567, "samples/s"), 80) == quantity(1234567, "samples/s")


def test_clip_keeps_both_ends() -> None:
    short = clip("void kernel<aaaaaaaaaaaaaaaaaaaaaaaa>(float)", 20)
    assert short == "void kernel<a…float)"
