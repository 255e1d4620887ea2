"""Which back end gave which trace numbers, and TraceLens's beside ours."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.base import Problem, Reasoned, Strict
from perfproof.schema.traces import Table

Backend = Literal["tracelens", "builtin"]


class TimelineRow(Reasoned):
    """One row of `gpu_timeline` by each definition, in milliseconds."""

    name: str = Field(description="`busy_time`, `idle_time`, …")
    all_ms: float = Field(description="ours: all GPU events of the file")
    linked_ms: float | None = Field(
        description="ours: only GPU events that an `ac2g` arrow joins to a launch"
    )
    tracelens_ms: float | None = Field(description="as TraceLens wrote it")


class RankBackend(Strict):
    """TraceLens's report on one rank's trace, held against our tables."""

    rank: int
    file: str = Field(description="the trace, relative to the run directory")
    tables: dict[str, Table] = Field(description="CSV files that TraceLens wrote, by sheet")
    timeline: list[TimelineRow]
    agreement: Literal["same", "definition", "classes", "other", "none"] = Field(
        description="`same`: TraceLens's numbers are ours; `definition`: they are ours over the "
        "events that an `ac2g` arrow joins to a launch; "
        "`classes`: busy and idle agree, what counts as "
        "communication does not; `other`: neither; `none`: TraceLens gave no numbers"
    )
    explanation: str = Field(description="the same in a sentence, with numbers")


class TraceBackend(Reasoned):
    """`tracelens/backend.json`: what was asked for, what was used, and why."""

    schema_version: Literal[1] = 1
    run_id: str
    asked: Literal["auto", "tracelens", "builtin"]
    used: Backend
    why: str = Field(description="why this back end, in one sentence")
    version: str | None = Field(description="of AMD's TraceLens; null where it was not used")
    ranks: list[RankBackend] = Field(description="by rank; empty where TraceLens was not used")
    collectives: dict[str, Table] = Field(
        default_factory=dict, description="CSV files of TraceLens's report over all ranks"
    )
    collectives_note: str = Field("", description="why there is no such report, or what it covers")
    problems: list[Problem] = Field(default_factory=list)
