"""Records of the telemetry stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.base import Problem, Reasoned


class GpuTelemetry(Reasoned):
    """One GPU over the steady window of a run."""

    gpu: int
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
    gpus: list[GpuTelemetry]
    problems: list[Problem] = Field(default_factory=list)
