"""`combined_report.json`: what the Markdown and HTML reports show, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.authors import AuthorRecord, AuthorScore
from perfproof.schema.base import Problem, Reasoned, Strict
from perfproof.schema.claims import VerifiedClaim
from perfproof.schema.foms import Foms
from perfproof.schema.telemetry import TelemetrySummary
from perfproof.schema.tracelens import TraceBackend
from perfproof.schema.traces import Finding


class RunCard(Reasoned):
    """Which run this is. The node list stands first: conclusions hold for these nodes."""

    run_id: str
    node_list: list[str] | None
    model: str | None
    workload: str | None
    trial: str | None
    state: str | None
    exit_code: int | None
    ended_by: str | None = Field(description="the log line that shows the cause, or `exit`, …")
    started_at: str | None
    duration_s: float | None
    ranks: int | None
    device_name: str | None
    dtype: str | None
    recipe_digest: str | None


class Quality(Strict):
    """Findings about the data, by rank."""

    rank: int
    file: str
    findings: list[Finding]


class InputFile(Strict):
    """A file the report rests on."""

    path: str
    role: str
    size_bytes: int
    blake3: str


class Provenance(Strict):
    """Where every number comes from."""

    perfproof_version: str
    inputs: list[InputFile]


class RemedyProbe(Reasoned):
    """What was tried for the largest verified claim that names a lever. It decides nothing."""

    lever: str | None
    claim: str | None
    why: str = Field(description="why this lever, or why nothing was measured")
    effect: float | None = Field(description="relative gain in samples a second")
    interval: tuple[float, float] | None = Field(description="95 % interval of `effect`")
    runs: int = Field(ge=0)
    node_hours: float = Field(ge=0)


class Report(Strict):
    """`combined_report.json`."""

    schema_version: Literal[1] = 1
    status: Literal["ok", "partial"]
    verdict: str = Field(description="the finding in one sentence, with its number")
    run: RunCard
    foms: Foms
    quality: list[Quality]
    claims: list[VerifiedClaim] = Field(description="verified, most share of step time first")
    remedy_probe: RemedyProbe | None = Field(None, description="null: none was asked for")
    refuted: list[VerifiedClaim]
    inconclusive: list[VerifiedClaim]
    authors: list[AuthorScore] = Field(
        default_factory=list, description="who claimed how much, and how often it held"
    )
    author_records: list[AuthorRecord] = Field(
        default_factory=list, description="answers of authors besides the rules"
    )
    trace_backend: TraceBackend | None = Field(
        None, description="where trace numbers come from; null: not asked"
    )
    telemetry: TelemetrySummary
    limits: list[str] = Field(description="what the data cannot show")
    problems: list[Problem] = Field(description="faults of the inputs, each told once")
    provenance: Provenance
