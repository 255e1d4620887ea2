"""What the verifier asks of telemetry, whoever answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Key: TypeAlias = tuple[str, ...]
Matchers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Stat:
    """A number and of how many steady samples it is."""

    value: float
    samples: int


class Source(Protocol):
    """Numbers over steady time, by the values of the labels `by`."""

    @property
    def how(self) -> str:
        """Where the numbers are from, in words."""

    def mean(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Mean of the samples."""

    def largest(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Largest sample."""

    def rate(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Increase a second of a counter."""


def combined(parts: list[Stat], join: Callable[[list[float]], float]) -> Stat:
    """Several series of one key as one."""
    return Stat(join([part.value for part in parts]), max(part.samples for part in parts))
