"""Telemetry figures of the run, and energy a sample from them and the throughput."""

from __future__ import annotations

import math

from perfproof.foms.known import Known, UnknownValueError, known, need
from perfproof.schema.base import Reason
from perfproof.schema.telemetry import GpuTelemetry, TelemetryFigure, TelemetrySummary


def telemetry_figures(
    summary: TelemetrySummary | None, throughput: Known[float]
) -> list[TelemetryFigure]:
    """The summary's figures without their readings, then energy a sample by its two methods."""
    if summary is None:
        return []
    own = [one.model_copy(update={"readings": []}) for one in summary.figures]
    gpus = _in_use(summary.gpus)
    by_counter = known(lambda: _power(gpus, summary, "energy_j") / need(throughput))
    by_power = known(lambda: _power(gpus, summary, "power_mean_w") / need(throughput))
    samples = min((gpu.samples for gpu in gpus), default=0)
    return [
        *own,
        _figure("energy_per_sample_by_counter", "energy counters", by_counter, samples),
        _figure("energy_per_sample_by_power", "mean power", by_power, samples),
    ]


def _in_use(gpus: list[GpuTelemetry]) -> list[GpuTelemetry]:
    """Without cards that ran nothing while others did: the sampler sees all cards of a node."""
    return [gpu for gpu in gpus if gpu.utilization_mean_percent] or gpus


def _power(gpus: list[GpuTelemetry], summary: TelemetrySummary, field: str) -> float:
    """Watt of all cards in use, in steady time."""
    if not gpus:
        raise UnknownValueError(summary.reasons.get("window_start_unix_s", Reason.NOT_RECORDED))
    return math.fsum(_card_power(gpu, field) for gpu in gpus)


def _card_power(gpu: GpuTelemetry, field: str) -> float:
    found = need(getattr(gpu, field), gpu.reasons.get(field, Reason.NOT_RECORDED))
    seconds = need(gpu.energy_span_s) if field == "energy_j" else 1.0
    if seconds <= 0:
        raise UnknownValueError(Reason.TOO_FEW_VALUES)
    return float(found) / seconds


def _figure(name: str, of: str, value: Known[float], samples: int) -> TelemetryFigure:
    missing = {"value": value} if isinstance(value, Reason) else {}
    alone = dict.fromkeys(("coverage", "per_card", "per_node"), Reason.NOT_APPLICABLE)
    return TelemetryFigure(
        id=name,
        meaning=f"energy of the cards in use a training sample, by their {of}",
        method="per_sample",
        unit="J/sample",
        across="sum",
        value=None if isinstance(value, Reason) else value,
        n=samples,
        coverage=None,
        per_card=None,
        per_node=None,
        readings=[],
        reasons={**alone, **missing},
    )
