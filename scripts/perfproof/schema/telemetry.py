"""Records of the telemetry stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.base import Problem, Reasoned


class EntityReading(Reasoned):
    """A figure of one card, network interface or node."""

    instance: str = Field(description="node; empty where the sampler does not say")
    part: str = Field(description="card or interface; empty for a node")
    n: int = Field(ge=0, description="samples in steady time")
    value: float | None


class Spread(Reasoned):
    """How far cards or nodes are apart, and which ones: no outlier is averaged away."""

    count: int = Field(ge=2)
    lowest: float
    lowest_at: str
    highest: float
    highest_at: str
    coefficient_of_variation: float | None = Field(description="standard deviation / mean")


class TelemetryFigure(Reasoned):
    """One registered query over the steady window; `docs/queries.md` has its formula."""

    id: str
    meaning: str
    method: Literal["mean", "max", "increase", "rate", "burst", "per_sample"] = Field(
        description="how samples become one number; two methods are never compared"
    )
    unit: str
    across: Literal["mean", "sum", "max"] = Field(description="over cards, interfaces or nodes")
    value: float | None
    n: int = Field(ge=0, description="samples of the card, interface or node that has the fewest")
    coverage: float | None = Field(
        ge=0, le=1, description="share of the steady window that those samples cover"
    )
    per_card: Spread | None
    per_node: Spread | None
    readings: list[EntityReading]


class GpuTelemetry(Reasoned):
    """One GPU over the steady window of a run."""

    gpu: int
    instance: str = Field("", description="node; empty where the sampler does not say")
    samples: int = Field(ge=0)
    utilization_mean_percent: float | None
    memory_busy_mean_percent: float | None = Field(
        description="share of time in which device memory was read or written"
    )
    power_mean_w: float | None
    memory_used_max_bytes: int | None
    sm_clock_mean_mhz: float | None
    temperature_max_c: float | None
    power_throttle_fraction: float | None = Field(
        description="share of samples with the software power cap active"
    )
    thermal_throttle_fraction: float | None = Field(
        description="share of samples with clocks held down by temperature"
    )
    energy_j: float | None = Field(
        description="energy counter: sum of differences between neighbouring steady samples"
    )
    energy_span_s: float | None = Field(description="time between those samples")


class TelemetrySummary(Reasoned):
    """`telemetry_summary.json`."""

    schema_version: Literal[1] = 1
    run_id: str
    file: str | None = Field(description="relative to the run directory")
    window_kind: Literal["steps", "run", "none"] = Field(
        "none",
        description="`steps`: while steady steps ran; `run`: start to end, for want of step times",
    )
    window_start_unix_s: float | None
    window_end_unix_s: float | None
    excluded_unix_s: list[tuple[float, float]] = Field(
        default_factory=list,
        description="profiled parts and pauses between steps: their samples do not count",
    )
    sampling_interval_s: float | None
    samples_outside_job: int = Field(
        0, ge=0, description="values from before the run's start or after its end: left out"
    )
    samples_duplicate: int = Field(
        0, ge=0, description="values of a time that the series had already: the last one counts"
    )
    gpus: list[GpuTelemetry]
    figures: list[TelemetryFigure] = Field(default_factory=list)
    problems: list[Problem] = Field(default_factory=list)
