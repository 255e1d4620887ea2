"""Records of the trace stage: what was read, how good it is, which tables were written."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.base import Problem, Reasoned, Strict


class Finding(Strict):
    """One fact about the quality of a trace."""

    code: str = Field(description="short name, e.g. `unlinked_gpu_events`")
    severity: Literal["info", "warn", "bad"]
    value: float
    message: str = Field(description="one sentence for a reader")


class Table(Strict):
    """One CSV file."""

    file: str = Field(description="relative to the analysis directory")
    rows: int = Field(ge=0)
    blake3: str


class RankTrace(Reasoned):
    """What one rank's trace holds. Times in the tables are microseconds unless named otherwise."""

    rank: int
    file: str = Field(description="the trace, relative to the run directory")
    world_size: int | None
    device_name: str | None
    visible_devices: int = Field(
        0, ge=0, description="GPUs that the trace lists as visible to the rank; 0: none listed"
    )
    events: int = Field(ge=0)
    gpu_events: int = Field(ge=0)
    unlinked_gpu_events: int = Field(ge=0, description="GPU events without a recorded launch")
    steps: list[int] = Field(description="numbers N of the ProfilerStep#N annotations")
    window_kind: Literal["steps", "gpu_span", "cpu_span", "empty"]
    window_start_ns: int | None = Field(description="trace clock")
    window_duration_ns: int | None = Field(description="denominator of every share")
    base_time_ns: int | None = Field(description="unix time of trace time 0")
    tables: dict[str, Table] = Field(description="by table name, e.g. `gpu_timeline`")
    findings: list[Finding]


class TraceSummary(Strict):
    """`tables/trace_summary.json`: the declared output of the trace stage."""

    schema_version: Literal[1] = 1
    run_id: str
    ranks: list[RankTrace] = Field(description="by rank")
    cross_rank: dict[str, Table] = Field(
        default_factory=dict, description="tables over all ranks, e.g. `collective_skew`"
    )
    problems: list[Problem] = Field(default_factory=list)


class ComparedSide(Strict):
    """One side of a comparison of traces."""

    files: list[str] = Field(description="traces, one a GPU")
    devices: list[str] = Field(description="names of the GPUs, where the traces say them")
    steps: list[list[int]] = Field(
        description="by trace, the profiled steps that launched GPU work and are counted"
    )
    time_us: float = Field(ge=0, description="a step (or trace), mean over the GPUs")


class ComparedTotal(Strict):
    """One number of both sides, per step (or trace) and GPU; times in µs."""

    name: str
    a: float
    b: float
    difference: float = Field(description="b - a: positive is time lost, negative time gained")
    share_of_a: float | None = Field(
        description="difference / a's time; null: a count, or a took no time"
    )


class ComparedRow(Strict):
    """One category, operator or kernel; counts and µs per step (or trace) and GPU."""

    key: dict[str, str]
    where: Literal["both", "only_a", "only_b"]
    a_count: float
    b_count: float
    a_us: float = Field(description="time in which at least one of its GPU events runs")
    b_us: float
    difference_us: float = Field(description="b - a: positive is time lost, negative time gained")
    share_of_a: float = Field(description="difference / a's time")


class TraceComparison(Strict):
    """`trace_comparison.json`: what changed between two traces, or two sets of them."""

    schema_version: Literal[1] = 1
    basis: Literal["per step", "per trace"]
    basis_reason: str = Field(description="why this basis, in one sentence")
    a: ComparedSide
    b: ComparedSide
    totals: list[ComparedTotal]
    largest: dict[str, list[ComparedRow]] = Field(
        description="by level, the rows with the largest |difference|"
    )
    tables: dict[str, Table] = Field(description="by level, all rows as CSV")
    problems: list[Problem] = Field(default_factory=list)


class RankQuality(Reasoned):
    """What of one rank's trace can be relied on, in numbers; `docs/tables.md` defines each."""

    rank: int
    file: str = Field(description="the trace, relative to the run directory")
    worst: Literal["ok", "info", "warn", "bad"] = Field(
        description="severity of the gravest finding; `ok`: none"
    )
    events: int = Field(ge=0)
    gpu_events: int = Field(ge=0)
    linked_to_launch: float | None = Field(
        ge=0, le=1, description="share of the GPU events with a recorded launch call"
    )
    linked_to_op: float | None = Field(
        ge=0, le=1, description="share of the GPU events with a CPU operation"
    )
    devices: list[int] = Field(description="numbers of the devices of the GPU events")
    streams: int = Field(ge=0)
    steps_expected: int | None = Field(description="last step number - first + 1")
    steps_recorded: int = Field(ge=0, description="different step numbers")
    steps_with_gpu_events: int = Field(ge=0)
    profiled_step_us: float | None = Field(
        description="median duration of the steps under the profiler; the report holds it against "
        "the step time without"
    )
    zero_durations: int = Field(ge=0)
    negative_durations: int = Field(ge=0)
    missing_durations: int = Field(ge=0, description="absent, NaN, infinite or of days")
    missing_timestamps: int = Field(ge=0)
    zero_timestamps: int = Field(ge=0)
    same_stream_overlap_us: float = Field(ge=0)
    impossible_durations: int = Field(
        ge=0, description="GPU events that run on until two later ones of their stream have ended"
    )
    busy_us: float = Field(ge=0, description="GPU busy time of the file, as recorded")
    busy_clipped_us: float = Field(
        ge=0, description="the same when impossible durations end where the next event begins"
    )
    span_us: float = Field(ge=0, description="from the first GPU event to the end of the last")
    largest_gap_us: float = Field(ge=0, description="longest time without a GPU event in the span")
    graph_launches: int = Field(ge=0)
    graph_launches_under_recorded: int = Field(ge=0)
    repairs: int = Field(ge=0)
    world_size: int | None
    ranks_missing: int | None = Field(ge=0, description="ranks of the world without a trace here")
    clock_offset_us: float | None = Field(
        description="this clock less that of the lowest rank: median over the ends of the same "
        "collectives, which all ranks leave together"
    )
    clock_offset_spread_us: float | None = Field(
        ge=0, description="from the 5th to the 95th percentile of the same differences"
    )
    findings: list[Finding]


class TraceQuality(Strict):
    """`tables/trace_quality.json`: what the traces of a run can bear, before any claim."""

    schema_version: Literal[1] = 1
    run_id: str
    ranks: list[RankQuality] = Field(description="by rank")
    problems: list[Problem] = Field(default_factory=list)
