"""Figures of a run from readings of its steady stretches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from perfproof.schema.base import Reason
from perfproof.schema.telemetry import EntityReading, Spread, TelemetryFigure
from perfproof.telemetry.evaluate import Name, Reading, Readings, SpanMs, evaluate
from perfproof.telemetry.queries import QUERIES
from perfproof.telemetry.registry import COUNTED, ENTITY_LABELS, Over, Query
from perfproof.telemetry.store import Store

Evaluator: TypeAlias = Callable[[Query, SpanMs, str | None], Readings]


@dataclass(frozen=True)
class Value:
    """One entity over all stretches: its number or the reason why there is none."""

    value: float | Reason
    samples: int
    seconds: float


@dataclass(frozen=True)
class Scene:
    """What all figures of a run share: samples, stretches, whose nodes, who answers."""

    store: Store
    spans: Sequence[SpanMs]
    jobid: str | None = None
    evaluator: Evaluator | None = None

    def readings(self, query: Query, span: SpanMs) -> Readings:
        """Readings of one stretch."""
        if self.evaluator is not None:
            return self.evaluator(query, span, self.jobid)
        return evaluate(query, self.store, span, self.jobid)

    @property
    def seconds(self) -> float:
        """Length of all stretches."""
        return math.fsum(last - first for first, last in self.spans) / 1000


def values_of(query: Query, scene: Scene) -> dict[Name, Value]:
    """The query's number an entity."""
    by_name: dict[Name, list[Reading]] = {}
    for span in scene.spans:
        for name, reading in scene.readings(query, span).items():
            by_name.setdefault(name, []).append(reading)
    return {name: _combined(query, by_name[name]) for name in sorted(by_name, key=_order)}


def _order(name: Name) -> tuple[tuple[int, str], ...]:
    """Card 10 after card 9."""
    return tuple((int(part) if part.isdecimal() else -1, part) for part in name)


def _combined(query: Query, readings: list[Reading]) -> Value:
    """Stretches of one entity as one: samples weigh the same, and so do seconds of a counter."""
    samples = sum(reading.samples for reading in readings)
    seconds = math.fsum(reading.seconds for reading in readings)
    known = [(reading, reading.value) for reading in readings if reading.value is not None]
    found: float | Reason = Reason.TOO_FEW_VALUES
    if any(reading.resets for reading in readings):
        found = Reason.COUNTER_RESET
    elif known and samples >= query.fewest and not (query.over in COUNTED and not seconds):
        found = _COMBINE[query.over](known)
    return Value(found, samples, seconds)


_Known: TypeAlias = list[tuple[Reading, float]]


def _weighted(known: _Known, weight: Callable[[Reading], float]) -> float:
    total = math.fsum(weight(reading) for reading, _ in known)
    return math.fsum(weight(reading) * value for reading, value in known) / total


_COMBINE: dict[Over, Callable[[_Known], float]] = {
    Over.MEAN: lambda known: _weighted(known, lambda reading: reading.samples),
    Over.RATE: lambda known: _weighted(known, lambda reading: reading.seconds),
    Over.MAX: lambda known: max(value for _, value in known),
    Over.BURST: lambda known: max(value for _, value in known),
    Over.INCREASE: lambda known: math.fsum(value for _, value in known),
}


def figure(query: Query, scene: Scene) -> TelemetryFigure:
    """The record of one query: one number, its samples and coverage, its spread."""
    values = values_of(query, scene)
    known = {name: one.value for name, one in values.items() if not isinstance(one.value, Reason)}
    reasons = {one.value for one in values.values() if isinstance(one.value, Reason)}
    value: float | Reason = _missing(query, scene)
    if reasons and (not known or query.across == "sum"):
        # A sum without one of its parts is another number.
        value = sorted(reasons)[0]
    elif known:
        value = _across(query, list(known.values()))
    return _record(query, scene, value, values, known)


def _missing(query: Query, scene: Scene) -> Reason:
    there = all(scene.store.select(term.metric, term.matchers) for term in query.terms)
    return Reason.TOO_FEW_VALUES if there and scene.spans else Reason.NOT_RECORDED


def _across(query: Query, values: list[float]) -> float:
    if query.across == "max":
        return max(values)
    total = math.fsum(values)
    return total if query.across == "sum" else total / len(values)


def _record(
    query: Query,
    scene: Scene,
    value: float | Reason,
    values: dict[Name, Value],
    known: dict[Name, float],
) -> TelemetryFigure:
    nodes = _by_node(query, known)
    found: dict[str, object] = {
        "value": value,
        "coverage": _coverage(query, scene, values),
        "per_card": spread(known) if query.entity == "card" else Reason.NOT_APPLICABLE,
        "per_node": spread(nodes),
    }
    return TelemetryFigure(
        id=query.id,
        meaning=query.meaning,
        method=query.over.name.lower(),
        unit=query.unit,
        across=query.across,
        n=min((one.samples for one in values.values()), default=0),
        readings=[_entity(query, name, one) for name, one in values.items()],
        reasons={name: one for name, one in found.items() if isinstance(one, Reason)},
        **{name: None if isinstance(one, Reason) else one for name, one in found.items()},
    )


def _entity(query: Query, name: Name, one: Value) -> EntityReading:
    labels = dict(zip(ENTITY_LABELS[query.entity], name, strict=True))
    return EntityReading(
        instance=labels.get("instance", ""),
        part=labels.get("card", labels.get("interface", "")),
        n=one.samples,
        value=None if isinstance(one.value, Reason) else one.value,
        reasons={"value": one.value} if isinstance(one.value, Reason) else {},
    )


def _by_node(query: Query, known: dict[Name, float]) -> dict[Name, float]:
    nodes: dict[Name, list[float]] = {}
    for name, value in known.items():
        nodes.setdefault(name[:1], []).append(value)
    return {name: _across(query, values) for name, values in nodes.items()}


def _coverage(query: Query, scene: Scene, values: dict[Name, Value]) -> float | Reason:
    """Share of the window with samples, at the entity that has the fewest."""
    interval = scene.store.interval_s([query.terms[0].metric])
    if not values or interval is None or not scene.seconds:
        return _missing(query, scene) if not values else Reason.TOO_FEW_VALUES
    fewest = min(one.samples for one in values.values())
    return min(1.0, fewest * interval / scene.seconds)


def spread(known: dict[Name, float]) -> Spread | Reason:
    """Lowest and highest by name, and how far they are apart; of two or more."""
    if len(known) < 2:
        return Reason.TOO_FEW_VALUES
    low, high = min(known, key=lambda name: known[name]), max(known, key=lambda name: known[name])
    mean = statistics.fmean(known.values())
    variation = statistics.stdev(known.values()) / abs(mean) if mean else None
    return Spread(
        count=len(known),
        lowest=known[low],
        lowest_at=_where(low),
        highest=known[high],
        highest_at=_where(high),
        coefficient_of_variation=variation,
        reasons={}
        if variation is not None
        else {"coefficient_of_variation": Reason.NOT_APPLICABLE},
    )


def _where(name: Name) -> str:
    return "/".join(part for part in name if part) or "the node"


def figures(scene: Scene) -> list[TelemetryFigure]:
    """All registered figures, in the registry's order."""
    return [figure(query, scene) for query in QUERIES.values()]
