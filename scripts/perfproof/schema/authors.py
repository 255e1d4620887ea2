"""Claims by other authors: what was asked, what was taken, what was rejected and why."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.base import Problem, Reasoned, Strict
from perfproof.schema.claims import Source


class Rejection(Strict):
    """One entry of an answer that is no claim of this run."""

    entry: str = Field(description="place in the answer: `claims.3`")
    reason: str


class AuthorRecord(Strict):
    """`authors/<source>.json`: one author's answer on one source of data."""

    schema_version: Literal[1] = 1
    run_id: str
    source: Source
    author: str = Field(description="`command:<program>` or `openai:<model>`")
    status: Literal["ok", "partial", "fail"] = Field(description="as the author ended")
    reason: str = Field(description="the author's words, or why there is no answer")
    accepted: list[str] = Field(description="ids of its claims in this run")
    rejected: list[Rejection]
    writes_confined: bool = Field(
        description="whether the kernel kept the author from writing outside its directory"
    )
    prompt_blake3: str
    inputs: dict[str, str] = Field(description="file it was given -> BLAKE3")
    problems: list[Problem] = Field(default_factory=list)


class AuthorScore(Reasoned):
    """How often an author was right in this run."""

    author: str
    claims: int = Field(ge=0, description="claims that were judged")
    verified: int = Field(ge=0)
    refuted: int = Field(ge=0)
    inconclusive: int = Field(ge=0)
    rejected: int = Field(ge=0, description="entries that were no claims of this run")
    right: float | None = Field(ge=0, le=1, description="verified / (verified + refuted)")
