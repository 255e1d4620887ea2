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
