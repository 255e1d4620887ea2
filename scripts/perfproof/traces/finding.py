"""How findings about a trace are graded and made."""

from __future__ import annotations

from typing import Literal

from perfproof.schema.traces import Finding

Severity = Literal["info", "warn", "bad"]


def grade(share: float, warn: float, bad: float) -> Severity:
    """`warn` and `bad` above their limits."""
    if share > bad:
        return "bad"
    return "warn" if share > warn else "info"


def finding(code: str, severity: Severity, value: float, message: str) -> Finding:
    """A finding by position."""
    return Finding(code=code, severity=severity, value=value, message=message)
