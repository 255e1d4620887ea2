"""What a telemetry query is made of: typed records, from which text and arithmetic follow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from perfproof.telemetry.store import Matchers

# A burst is the largest mean rate of any tile of this length that lies whole in the window.
TILE_MS = 5000


class Over(StrEnum):
    """How the samples of one series in a window become one number."""

    MEAN = "mean of the samples"
    MAX = "largest sample"
    INCREASE = "last minus first sample of a counter"
    RATE = "increase of a counter over the time between its first and last sample"
    BURST = f"largest rate of any {TILE_MS // 1000} s tile of a counter"


COUNTED = frozenset({Over.INCREASE, Over.RATE, Over.BURST})
Entity = Literal["card", "interface", "node"]
Across = Literal["mean", "sum", "max"]
ENTITY_LABELS: dict[Entity, tuple[str, ...]] = {
    "card": ("instance", "card"),
    "interface": ("instance", "interface"),
    "node": ("instance",),
}


@dataclass(frozen=True)
class Factor:
    """A constant of a formula with its dimension, `512 FLOP/op`."""

    value: float
    unit: str
    why: str = ""


@dataclass(frozen=True)
class Term:
    """A metric times constants; `unit` is the metric's own."""

    metric: str
    unit: str
    factors: tuple[Factor, ...] = ()
    matchers: Matchers = ()

    @property
    def scale(self) -> float:
        """The product of the factors."""
        product = 1.0
        for factor in self.factors:
            product *= factor.value
        return product


@dataclass(frozen=True)
class Query:
    """One number an entity, `across` makes one of all entities. `over` is its method."""

    id: str
    meaning: str
    over: Over
    terms: tuple[Term, ...]
    unit: str
    entity: Entity = "card"
    across: Across = "mean"
    fewest: int = 1

    @property
    def grouped(self) -> Literal["sum", "max"]:
        """How several series of one entity become one, `location`s of a temperature say."""
        return "max" if self.over is Over.MAX else "sum"


def dimension(unit: str) -> Counter[str]:
    """`TFLOP/s` as powers of its parts; `1` and percent have none."""
    powers: Counter[str] = Counter()
    for place, part in enumerate(unit.split("/")):
        for name in part.split("*"):
            if name != "1":
                powers[name] += 1 if place == 0 else -1
    return Counter({name: power for name, power in powers.items() if power})


def derived(term: Term, over: Over) -> Counter[str]:
    """The dimension that a term's formula gives."""
    units = [term.unit, *(factor.unit for factor in term.factors)]
    units += ["1/s"] if over in (Over.RATE, Over.BURST) else []
    total: Counter[str] = Counter()
    for unit in units:
        for name, power in dimension(unit).items():
            total[name] += power
    return Counter({name: power for name, power in total.items() if power})
