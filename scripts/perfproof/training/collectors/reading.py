"""What a source of samples gives: names, labels and values. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Protocol

Labels = tuple[tuple[str, str], ...]
Reading = tuple[str, Labels, float]


class Source(Protocol):
    """Something on this node that can be read again and again."""

    def read(self) -> Iterable[Reading]:
        """What it says now. What it cannot say is left out, never zero."""
        ...


class AbsentError(Exception):
    """This node has no such source; the message says how that is known."""


def card(number: int, **labels: str) -> Labels:
    """Labels of one GPU of this node."""
    return (("card", str(number)), *sorted(labels.items()))


def readings(labels: Labels, **values: float | None) -> Iterator[Reading]:
    """Readings of one thing by metric name; those without a value are left out."""
    for name, value in values.items():
        if value is not None and math.isfinite(value):
            yield name, labels, value
