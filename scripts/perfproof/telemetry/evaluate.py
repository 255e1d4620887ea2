"""The built-in evaluator: registered queries on series in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from perfproof.telemetry.names import JOB_INFO
from perfproof.telemetry.registry import COUNTED, ENTITY_LABELS, TILE_MS, Over, Query, Term
from perfproof.telemetry.store import Series, Store, Times, Values

Name: TypeAlias = tuple[str, ...]
SpanMs: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Reading:
    """One entity in one window: its number, samples, seconds between the first and the last."""

    value: float | None
    samples: int
    seconds: float
    resets: int = 0


Readings: TypeAlias = dict[Name, Reading]


@dataclass(frozen=True)
class _Part:
    """One series in one window; a burst has a value a tile, else it is one, NaN for none."""

    values: Values
    samples: int
    seconds: float
    resets: int


def evaluate(query: Query, store: Store, span: SpanMs, jobid: str | None = None) -> Readings:
    """Readings of samples in `span` (first and last ms); with `jobid` of that job's nodes only."""
    nodes = None if jobid is None else _nodes(store, span, jobid)
    terms = [_parts(query, term, store, span) for term in query.terms]
    found: Readings = {}
    for name in terms[0]:
        if all(name in term for term in terms) and (nodes is None or name[0] in nodes):
            found[name] = _reading(query, [term[name] for term in terms])
    return found


def _nodes(store: Store, span: SpanMs, jobid: str) -> set[str]:
    """Nodes with a sample of the job's information in the window."""
    infos = store.select(JOB_INFO, (("jobid", jobid),))
    return {
        one.labels.get("instance", "") for one in infos if len(one.times_ms[one.between(*span)])
    }


def _reading(query: Query, terms: list[list[_Part]]) -> Reading:
    """Terms of one entity, several series each, as one number."""
    scaled = [
        term.scale * _grouped(query, [part.values for part in parts])
        for term, parts in zip(query.terms, terms, strict=True)
    ]
    total = reduce(np.add, scaled)
    known = total[np.isfinite(total)]
    return Reading(
        float(known.max()) if len(known) else None,
        max(part.samples for part in terms[0]),
        max(part.seconds for part in terms[0]),
        sum(max(part.resets for part in parts) for parts in terms),
    )


def _grouped(query: Query, values: list[Values]) -> Values:
    """Element by element over the series that have a number there."""
    if query.grouped == "max":
        return reduce(np.fmax, values)
    stacked = np.stack(values)
    missing = np.isnan(stacked).all(axis=0)
    return np.where(missing, np.nan, np.nansum(stacked, axis=0))


def _parts(query: Query, term: Term, store: Store, span: SpanMs) -> dict[Name, list[_Part]]:
    found: dict[Name, list[_Part]] = {}
    for one in store.select(term.metric, term.matchers):
        where = one.between(*span)
        if where.stop > where.start:
            name = tuple(one.labels.get(label, "") for label in ENTITY_LABELS[query.entity])
            found.setdefault(name, []).append(_part(query, one, where, span))
    return found


def _part(query: Query, one: Series, where: slice, span: SpanMs) -> _Part:
    times, values = one.times_ms[where], one.values[where]
    if query.over is Over.BURST:
        found = _tile_rates(times, values, span)
    else:
        found = np.array([_SIMPLE[query.over](times, values)])
    resets = int((np.diff(values) < 0).sum()) if query.over in COUNTED else 0
    return _Part(found, len(times), float(times[-1] - times[0]) / 1000, resets)


def _rate(times: Times, values: Values) -> float:
    seconds = float(times[-1] - times[0]) / 1000
    return float(values[-1] - values[0]) / seconds if seconds else np.nan


_SIMPLE: dict[Over, Callable[[Times, Values], float]] = {
    Over.MEAN: lambda _times, values: float(values.mean()),
    Over.MAX: lambda _times, values: float(values.max()),
    Over.INCREASE: lambda _times, values: float(values[-1] - values[0]),
    Over.RATE: _rate,
}


def tile_ends(span: SpanMs) -> Times:
    """Ends of the tiles that lie whole in the window: multiples of the tile's length."""
    first = -(-(span[0] + TILE_MS - 1) // TILE_MS)
    return np.arange(first, span[1] // TILE_MS + 1, dtype=np.int64) * TILE_MS


def _tile_rates(times: Times, values: Values, span: SpanMs) -> Values:
    """Rate in each tile; NaN in one without two samples. A tile leaves its start out."""
    ends = tile_ends(span)
    low = np.searchsorted(times, ends - TILE_MS, side="right")
    high = np.searchsorted(times, ends, side="right") - 1
    rates = np.full(len(ends), np.nan)
    some = high > low
    first, last = low[some], high[some]
    rates[some] = (values[last] - values[first]) / ((times[last] - times[first]) / 1000)
    return rates
