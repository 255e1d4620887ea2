"""Records about the cluster: nodes that jobs stay away from, and how a run ended and why."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from perfproof.schema.base import Reasoned, Strict


def _utc(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without zone; UTC is written with Z, as in 2026-01-31T12:00:00Z")
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


Utc = Annotated[str, AfterValidator(_utc)]
NodeName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=253),
]
Words = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\r\n]*$")]


class ExcludedNode(Strict):
    """One node that jobs stay away from, on evidence about this node itself."""

    name: NodeName
    reason: Words
    evidence: Words = Field(description="file that shows the fault, or who to ask")
    first_seen: Utc
    last_seen: Utc
    expires: Utc | Literal["never"] = Field(description="`never`: until it is cleared by hand")
    by: Words = Field(description="program or person that put it here")


class ExcludeList(Strict):
    """`results/cluster/excluded_nodes.json`."""

    schema_version: Literal[1] = 1
    nodes: list[ExcludedNode] = Field(default_factory=list, description="sorted by name")

    @model_validator(mode="after")
    def _each_node_once(self) -> Self:
        names = [node.name for node in self.nodes]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"nodes listed twice: {', '.join(twice)}")
        return self


class EndState(StrEnum):
    """How a run ended, from its own files and from the scheduler together."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAIL = "node_fail"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    HELD = "held"
    UNSATISFIABLE = "unsatisfiable"
    LOST = "lost"
    TIMEOUT_WAITING = "timeout_waiting"


class Cause(StrEnum):
    """Why a training command failed, as far as the end of its log tells."""

    DEVICE_MEMORY = "device_memory"
    HOST_MEMORY = "host_memory"
    GPU_MEMORY_FAULT = "gpu_memory_fault"
    EXCEPTION = "python_exception"
    DISK_FULL = "disk_full"
    RANKS_ALONE = "ranks_alone"
    HANG = "hang"
    COLLECTIVE = "collective"
    ABORTED = "aborted"
    SEGMENTATION_FAULT = "segmentation_fault"
    KILLED = "killed"
    UNKNOWN = "unknown"


class RunEnding(Reasoned):
    """`ending.json`: how a run ended and what that rests on."""

    schema_version: Literal[1] = 1
    state: EndState
    cause: Cause | None = Field(description="of a failure or a time-out; null for other endings")
    evidence: str | None = Field(description="line of the log that shows the cause")
    blame: Literal["none", "run", "infrastructure", "unknown"] = Field(
        description="whether what ran is at fault, or where it ran; a lever answers only for `run`"
    )
    exit_code: int | None = Field(description="of the training command or of the batch script")
    rests_on: Literal["run", "scheduler", "both"] = Field(
        description="whose word decided: the run's own manifest, or the scheduler's"
    )
    scheduler_said: str | None = Field(description="the scheduler's last word, as it printed it")
    explanation: str = Field(description="one sentence")


class NodeHealth(Reasoned):
    """What one node said of itself before training."""

    name: NodeName
    tests: dict[str, str] = Field(
        description="`home`, `shared`, `data`, `sif`, `bind`: `OK` or what failed"
    )
    clock_offset_s: float | None = Field(
        description="least by which its clock is off the one of the node that asked"
    )
    fault: str | None = Field(description="why the run cannot have this node; null: healthy")


class HealthReport(Reasoned):
    """`node_health.json`: the probe of all nodes of a run."""

    schema_version: Literal[1] = 1
    nodes: list[NodeHealth] = Field(description="in the order of the allocation")
    fault: str | None = Field(
        description="why no node could be asked, which is evidence against none; null: they were"
    )


class Check(Strict):
    """One line of the preflight."""

    name: Words
    state: Literal["ok", "warn", "fail", "not_applicable"]
    found: Words
    remedy: str = Field("", description="what to do; empty where there is nothing to do")


class Preflight(Strict):
    """`preflight.json`: whether this cluster, as configured, can take the run that is asked for."""

    schema_version: Literal[1] = 1
    cluster: str
    nodes: int = Field(ge=1, description="nodes of the run")
    checks: list[Check] = Field(description="in the order in which they are printed")
