"""Claims: statements that a program can check, and the verdicts of the program that checked."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from perfproof.schema.base import Problem, Reasoned, Strict


class BottleneckClass(StrEnum):
    """Where step time goes. The eight classes of the report."""

    GPU_COMPUTE = "gpu_compute"
    GPU_MEMORY_HBM = "gpu_memory_hbm"
    CPU_DISPATCH = "cpu_dispatch"
    COMM_XGMI = "comm_xgmi"
    COMM_SCALEOUT = "comm_scaleout"
    DATALOADER = "dataloader"
    HOST_IO = "host_io"
    HOST_CPU = "host_cpu"


class Source(StrEnum):
    """Which raw data a claim is about, and so which verifier judges it."""

    TRACE = "trace"
    TELEMETRY = "telemetry"


class Evidence(Strict):
    """Where the analyst read the number: a table, the row's key, the column."""

    file: str = Field(description="relative to the analysis directory")
    where: str = Field(description="row and column in words: `type=idle_time, column percent`")


class Claim(Reasoned):
    """One statement with its number. `metric` and `params` say exactly what to recompute."""

    id: str = Field(pattern=r"^(TR|TE)-[0-9]{3}$")
    bottleneck_class: BottleneckClass = Field(alias="class")
    source: Source
    statement: str
    metric: str = Field(description="from the closed vocabulary; `docs/metrics.md` defines each")
    params: dict[str, Any] = Field(default_factory=dict)
    value: float
    unit: str
    share_of_step: float | None = Field(
        ge=0, le=1, description="upper bound on the share of step time a fix could give back"
    )
    ranks: list[int] = Field(description="ranks the value is about; empty: the whole run")
    evidence: list[Evidence]
    part_of: list[str] = Field(
        default_factory=list,
        description="claims ranked above whose time, on this claim's rank, holds at least nine "
        "tenths of this one's: their shares do not add up",
    )
    remedy: str | None = Field(description="what to try; null where it is a limit")
    levers: list[str] = Field(default_factory=list, description="catalog ids that address it")
    author: str = "analyst"


class ClaimSet(Strict):
    """`claims/<source>.json`."""

    schema_version: Literal[1] = 1
    run_id: str
    source: Source
    claims: list[Claim]
    problems: list[Problem] = Field(default_factory=list)


class Verdict(StrEnum):
    """What the verifier found."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"


class VerifiedClaim(Claim):
    """A claim with the verifier's own number."""

    verdict: Verdict
    verifier_value: float | None
    tolerance: float = Field(ge=0, description="largest accepted |value - verifier_value|")
    note: str = Field(description="how it was recomputed, or why it could not be")


class VerifiedSet(Strict):
    """`verified/<source>.json`: same claims, same order."""

    schema_version: Literal[1] = 1
    run_id: str
    source: Source
    claims: list[VerifiedClaim]
    problems: list[Problem] = Field(default_factory=list)
