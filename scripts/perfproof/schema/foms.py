"""Figures of merit of one run, with the integrity vector that says what they may be compared to."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from perfproof.schema.base import Problem, Reasoned
from perfproof.schema.telemetry import TelemetryFigure


class Method(StrEnum):
    """How a throughput or a step time was computed. Two methods are never compared."""

    REALISED_BATCH = "realised_batch_over_step_time"
    NOMINAL_BATCH = "nominal_batch_over_step_time"
    EPOCH_RATE = "samples_over_epoch_time"


class StepTimeSource(StrEnum):
    """Which line a step time comes from.

    `tic4_tic1` (ORBIT-2) is synchronised on both sides and leaves out the wait for the batch;
    `batch_seconds` (older ORBIT-2) is printed for every tenth step only; a `step_record` runs from
    step to step, so it holds the wait for the batch, and comes first where every step has one.
    """

    TIC4_TIC1 = "tic4_tic1"
    BATCH_SECONDS = "batch_seconds"
    STEP_RECORD = "step_record"


class Primary(Reasoned):
    """The figure the loop decides on."""

    name: str
    unit: str
    direction: Literal["higher", "lower"]
    value: float | None
    method: Method | None


class Distribution(Reasoned):
    """Spread of the steady steps of one run. Its standard error describes steps, not runs."""

    n: int = Field(ge=1)
    mean: float
    median: float
    p5: float
    p95: float
    standard_error: float | None = Field(description="sd / sqrt(n); null for n = 1")


class LossPoint(Reasoned):
    """Loss of one epoch (mean of its steps where the trainer prints none, or only their sum)."""

    epoch: int
    loss: float | None = Field(description="null with reason non_finite")


class LossVerdict(StrEnum):
    """What the loss curve says on its own, without a baseline to compare to."""

    DECREASING = "decreasing"
    NOT_DECREASING = "not_decreasing"
    NON_FINITE = "non_finite"
    TOO_SHORT = "too_short"
    UNKNOWN = "unknown"


class Integrity(Reasoned):
    """What must be equal before two runs may be compared."""

    model: str | None
    workload: str | None
    cluster: str | None = Field(description="whose settings and environment the run had")
    log_format: str | None
    step_time_source: StepTimeSource | None
    ranks: int | None
    nominal_batch_per_rank: int | None
    realised_batches_per_rank: list[int] | None = Field(
        description="distinct batch sizes of the steady steps, sorted"
    )
    batches_per_epoch: int | None
    samples_per_epoch: int | None = Field(
        description="all ranks; as realised where the log shows each batch, else nominal"
    )
    partial_step_fraction: float | None = Field(
        description="share of steady steps with fewer samples than the nominal batch"
    )
    dtype: str | None
    node_list: list[str] | None
    device_name: str | None
    hbm_reserved_bytes: int | None = Field(description="peak over steps and ranks")
    profiled_steps_excluded: int = Field(ge=0)
    steady_steps: int = Field(ge=0)
    recipe_digest: str | None


class Foms(Reasoned):
    """`foms.json`."""

    schema_version: Literal[1] = 1
    run_id: str
    primary: Primary
    step_time_s: Distribution | None = Field(description="steady, unprofiled steps")
    steady_step_times_s: list[float] = Field(description="the steps behind `step_time_s`")
    throughput_samples_per_s: float | None = Field(description="all ranks")
    throughput_method: Method | None
    epoch_time_s: float | None = Field(
        description="mean of steady, unprofiled epochs; means nothing without samples_per_epoch"
    )
    samples_per_epoch: int | None
    hbm_reserved_bytes: int | None
    hbm_reserved_fraction: float | None = Field(description="of the device's real capacity")
    loss_curve: list[LossPoint]
    final_loss: float | None
    non_finite_count: int | None = Field(
        ge=0, description="NaN or infinite losses seen, all ranks; null without a log"
    )
    loss_verdict: LossVerdict
    integrity: Integrity
    telemetry: list[TelemetryFigure] = Field(
        default_factory=list,
        description="of the steady window; the telemetry summary has them card by card",
    )
    problems: list[Problem] = Field(default_factory=list)


class Comparison(Reasoned):
    """Answer of `compare`: a ratio with its interval, or what makes the two not comparable."""

    comparable: bool
    differs: list[str] = Field(description="integrity fields that differ, with both values")
    metric: str
    direction: Literal["higher", "lower"]
    ratio: float | None = Field(description="b / a, geometric mean over runs")
    interval: tuple[float, float] | None = Field(
        description="of the ratio, over runs; null when neither side was repeated"
    )
    confidence: float
    runs: tuple[int, int] = Field(description="number of runs of a and of b")
    verdict: Literal["better", "worse", "~", "not_comparable", "unknown"] = Field(
        description="`~`: the interval holds 1; `unknown`: no interval can be had"
    )
