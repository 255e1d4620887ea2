"""Gains, intervals and costs for people."""

from __future__ import annotations

from perfproof.report.units import gain, number
from perfproof.schema.decisions import LeverDecision

SAME = "~"


def interval(ends: tuple[float, float] | None) -> str:
    """`[+1.0 %, +5.2 %]`, or nothing."""
    return f"[{gain(ends[0])}, {gain(ends[1])}]" if ends else ""


def shown(lever: LeverDecision) -> str:
    """The gain as measured; `~` where no difference was shown, nothing where none was measured."""
    if lever.effect is None:
        return ""
    return gain(lever.effect) if _significant(lever) else SAME


def _significant(lever: LeverDecision) -> bool:
    """Whether zero is excluded: by the interval, and for a gain by the loop's own test too."""
    ends = lever.interval
    if ends is None or ends[0] <= 0 <= ends[1]:
        return False
    if ends[1] < 0 or lever.kind == "diagnostic" or lever.status == "accepted":
        return True
    if lever.p_value is None or lever.p_bound is None:
        return False
    return lever.p_value < lever.p_bound


def hours(value: float, without: int = 0) -> str:
    """Node-hours; `≥` where some runs' cost is not known."""
    return f"≥ {number(value, 3)}" if without else number(value, 3)


def count(n: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
