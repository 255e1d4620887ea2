"""Times are UTC, ISO 8601 with Z, to the second."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def text(moment: datetime) -> str:
    """`2026-01-31T12:00:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def parse(written: str) -> datetime:
    """The moment that `text` wrote."""
    return datetime.fromisoformat(written)
