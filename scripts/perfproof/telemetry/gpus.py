"""One record a card: the figures that analysts read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from perfproof.schema.base import Reason
from perfproof.schema.telemetry import GpuTelemetry
from perfproof.telemetry.evaluate import Name
from perfproof.telemetry.figures import Scene, Value, values_of
from perfproof.telemetry.queries import QUERIES
from perfproof.telemetry.store import Times

# Field: the query whose number it is.
FIELDS: dict[str, str] = {
    "utilization_mean_percent": "gpu_utilization",
    "memory_busy_mean_percent": "memory_busy",
    "power_mean_w": "power",
    "memory_used_max_bytes": "memory_used",
    "sm_clock_mean_mhz": "core_clock",
    "temperature_max_c": "temperature",
    "power_throttle_fraction": "throttled_power_cap_fraction",
    "thermal_throttle_fraction": "throttled_thermal_fraction",
    "energy_j": "energy",
}
_VANISHED_INTERVALS = 5
_ByQuery: TypeAlias = dict[str, dict[Name, Value]]


def gpu_records(scene: Scene, times: Mapping[tuple[str, str], Times]) -> list[GpuTelemetry]:
    """Every card of the job. Only samples of steady time count: none of them means null."""
    found = {name: values_of(QUERIES[name], scene) for name in FIELDS.values()}
    return [
        _record(scene, card, own, found)
        for card, own in times.items()
        if card[1].isdecimal() and (scene.jobid is None or _is_ours(card, found))
    ]


def _is_ours(card: Name, found: _ByQuery) -> bool:
    """In a file of several jobs, a card without any reading is another job's."""
    return any(card in values for values in found.values())


def _record(scene: Scene, card: tuple[str, str], times: Times, found: _ByQuery) -> GpuTelemetry:
    fields: dict[str, Any] = {
        field: _field(scene, query, found[query].get(card)) for field, query in FIELDS.items()
    }
    energy = found["energy"].get(card)
    span: Any = fields["energy_j"]
    fields["energy_span_s"] = span if isinstance(span, Reason) or not energy else energy.seconds
    if not isinstance(fields["memory_used_max_bytes"], Reason):
        fields["memory_used_max_bytes"] = round(fields["memory_used_max_bytes"])
    return GpuTelemetry(
        gpu=int(card[1]),
        instance=card[0],
        samples=sum(_count(times, first, last) for first, last in scene.spans),
        reasons={name: value for name, value in fields.items() if isinstance(value, Reason)},
        **{name: None if isinstance(v, Reason) else v for name, v in fields.items()},
    )


def _field(scene: Scene, query: str, value: Value | None) -> float | Reason:
    if value is not None:
        return value.value
    (term,) = QUERIES[query].terms
    known = bool(scene.store.select(term.metric, term.matchers)) and bool(scene.spans)
    return Reason.TOO_FEW_VALUES if known else Reason.NOT_RECORDED


def _count(times: Times, first: int, last: int) -> int:
    low, high = np.searchsorted(times, (first, last + 1))
    return int(high - low)


def vanished(scene: Scene, times: Mapping[tuple[str, str], Times]) -> list[str]:
    """A line on each card whose samples end before the others' do."""
    if not scene.spans:
        return []
    first, last = scene.spans[0][0], scene.spans[-1][1]
    ends = {card: _last_in(own, first, last) for card, own in times.items()}
    newest = max((end for end in ends.values() if end is not None), default=None)
    if newest is None:
        return []
    return [
        f"card {'/'.join(filter(None, card))}: {_lost(end, newest)}; expected samples to the end"
        for card, end in ends.items()
        if end is None or newest - end > _VANISHED_INTERVALS * _interval_ms(times[card])
    ]


def _last_in(times: Times, first: int, last: int) -> int | None:
    inside = times[(times >= first) & (times <= last)]
    return int(inside[-1]) if len(inside) else None


def _interval_ms(times: Times) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 1000.0


def _lost(end: int | None, newest: int) -> str:
    if end is None:
        return "no sample in steady time, while other cards have some"
    return f"no sample in the last {(newest - end) / 1000:g} s of steady time"
