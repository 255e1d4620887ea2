"""Times of trace events: decimal microseconds in the file, exact integer nanoseconds here.

A float64 holds 1.7e15 µs only to 0.25 µs, so the digits are read as they stand in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import numpy.typing as npt
from msgspec import Raw

from perfproof.traces.intervals import Ints, Mask

_COMMA, _DOT, _ZERO, _NINE = 44, 46, 48, 57
# Nanoseconds; starts below one and durations below the other add up, and differ, within int64.
LONGEST = 2**48  # three days
_LIMIT = 2**62 - LONGEST
_MOST_DIGITS = 19
_FAST_DIGITS = 16  # integer digits of microseconds below the limit, or just above it

Bytes = npt.NDArray[np.uint8]


def to_ns(tokens: Sequence[Raw]) -> tuple[Ints, Mask]:
    """Nanoseconds of JSON numbers (or strings of digits) in µs, and which of them are numbers.

    A fraction finer than 1 ns is rounded half to even.
    """
    if not tokens:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    text = b",".join(tokens) + b","
    if text.count(b",") != len(tokens):  # a token with a comma in it: a list, an odd string
        return _slow(tokens, np.arange(len(tokens)), np.zeros(len(tokens), np.int64))
    buffer = np.frombuffer(text, np.uint8)
    stop = np.flatnonzero(buffer == _COMMA)
    start = np.concatenate(([0], stop[:-1] + 1))
    dot = _first_dot(buffer, start, stop)
    whole = _whole(buffer, start, dot)
    odd = np.flatnonzero(_strange(buffer, start, dot, stop) | (whole >= _LIMIT // 1000))
    return _slow(tokens, odd, whole * 1000 + _thousandths(buffer, dot, stop))


def _first_dot(buffer: Bytes, start: Ints, stop: Ints) -> Ints:
    """Where each token's first dot is, or its end."""
    dots = np.append(np.flatnonzero(buffer == _DOT), buffer.size)
    dot: Ints = np.minimum(dots[np.searchsorted(dots, start)], stop)
    return dot


def _whole(buffer: Bytes, start: Ints, dot: Ints) -> Ints:
    value = np.zeros(start.size, np.int64)
    for place in range(min(int((dot - start).max()), _FAST_DIGITS), 0, -1):
        at = dot - place
        value = value * 10 + np.where(at >= start, buffer[at].astype(np.int64) - _ZERO, 0)
    return value


def _thousandths(buffer: Bytes, dot: Ints, stop: Ints) -> Ints:
    value = np.zeros(dot.size, np.int64)
    for place in (1, 2, 3):
        at = np.minimum(dot + place, stop)
        value = value * 10 + np.where(at < stop, buffer[at].astype(np.int64) - _ZERO, 0)
    return value


def _strange(buffer: Bytes, start: Ints, dot: Ints, stop: Ints) -> Mask:
    """Which tokens are not plain `digits[.up to three digits]`."""
    plain = (buffer >= _ZERO) & (buffer <= _NINE)
    digits_before = np.concatenate(([0], np.cumsum(plain)))
    digits = digits_before[stop] - digits_before[start]
    length = stop - start - (dot < stop)
    whole, fraction = dot - start, stop - dot - 1
    strange: Mask = (digits != length) | (length == 0) | (whole > _FAST_DIGITS) | (fraction > 3)
    return strange


def _slow(tokens: Sequence[Raw], odd: Ints, values: Ints) -> tuple[Ints, Mask]:
    """Read the `odd` tokens one by one into `values`."""
    good = np.ones(len(tokens), np.bool_)
    for index in odd.tolist():
        nanoseconds = _decimal(bytes(tokens[index]))
        good[index] = nanoseconds is not None
        values[index] = nanoseconds or 0
    return values, good


def _decimal(token: bytes) -> int | None:
    """One token, quoted or not, signed or with an exponent; None where it is not a number."""
    try:
        number = Decimal(token.strip(b'" ').decode("ascii")) * 1000
        if number.adjusted() > _MOST_DIGITS:  # spares `int` millions of digits
            return None
        whole = int(number.to_integral_value(ROUND_HALF_EVEN))
    except (ArithmeticError, ValueError):
        return None
    return whole if abs(whole) < _LIMIT else None
