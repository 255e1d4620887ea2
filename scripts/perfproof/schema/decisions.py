"""What a loop found out: its decisions, what must not be tried again, and a replay of it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.base import Reasoned, Strict
from perfproof.schema.config import Id
from perfproof.schema.levers import Fingerprint, VerdictWord
from perfproof.schema.loop import Decision, LeverStatus, LoopSpec, Measurement, Noise


class LeverDecision(Reasoned):
    """What was decided about one lever, on which runs. Effects are relative: 0.03 is 3 % better."""

    id: Id
    kind: Literal["lever", "diagnostic"]
    status: LeverStatus
    why: str = Field(description="reason of the status, one line")
    order: int | None = Field(description="place in which it was tried; null: it was not")
    picked_because: str | None
    against: str | None = Field(description="trial it was held against")
    trial: str | None = Field(description="trial that had it")
    effect: float | None = Field(description="gain over `against`, as measured")
    interval: tuple[float, float] | None = Field(description="95 % interval of `effect`")
    shrunk: float | None = Field(description="`effect` pulled toward zero: what to expect of it")
    p_value: float | None = Field(description="one-sided, against no gain")
    p_bound: float | None = Field(description="what it had to fall below")
    candidate_runs: int = Field(ge=0, description="runs behind `effect`, of `trial`")
    best_runs: int = Field(ge=0, description="runs behind `effect`, of `against`")
    runs: int = Field(ge=0, description="runs that count for it, those of `against` too")
    node_hours: float = Field(ge=0, description="of `measured`, as far as it is known")
    measured: list[Measurement] = Field(
        description="runs made for it in order, those lost to infrastructure among them"
    )


class Confirmation(Reasoned):
    """The best recipe against the first baseline, in fresh runs. The only total gain there is."""

    outcome: Literal["confirmed", "not_confirmed", "not_measured", "nothing_to_confirm"] = Field(
        description="`not_confirmed`: the interval includes zero or lies below it"
    )
    why: str = Field(description="reason of the outcome, one line")
    effect: float | None = Field(description="gain of the best over the baseline")
    interval: tuple[float, float] | None = Field(description="95 % interval of `effect`")
    p_value: float | None = Field(description="one-sided, against no gain")
    best_runs: int = Field(ge=0)
    baseline_runs: int = Field(ge=0)


class Cost(Strict):
    """Runs of one part of a loop and what they cost."""

    part: str = Field(description="`baseline`, a lever's id, `confirmation` or `total`")
    runs: int = Field(ge=0)
    failed: int = Field(ge=0, description="runs that a trial answers for")
    infrastructure: int = Field(ge=0, description="runs that ended for no fault of their own")
    node_hours: float = Field(ge=0, description="nodes x duration, as far as it is known")
    without_cost: int = Field(ge=0, description="runs whose cost is not known")


class Decisions(Reasoned):
    """`decisions.json`: everything a loop decided."""

    schema_version: Literal[1] = 1
    spec: LoopSpec
    noise: Noise | None
    detectable: float | None = Field(
        description="smallest gain that a lever's runs find with the asked power"
    )
    shares: int = Field(ge=0, description="levers that share the error budget")
    boundness: Literal["latency_bound", "not_latency_bound", "unclear"] | None
    levers: list[LeverDecision] = Field(description="tried ones in order, then the others")
    path: list[str] = Field(description="trials from the baseline to the best recipe")
    best: str
    confirmation: Confirmation
    costs: list[Cost] = Field(description="by part, the total last")
    ending: str = Field(description="label of the ending: `complete`, or the budget that ended it")
    ended_because: str
    steps: int = Field(ge=0, description="steps of exploring")


class DraftVerdict(Strict):
    """A catalog's `verdicts:` entry but for its date: runs carry none, whoever copies it does."""

    verdict: VerdictWord
    fingerprint: Fingerprint
    evidence: str


class Ban(Strict):
    """One lever that must not be tried again under the conditions of `verdict.fingerprint`."""

    lever: Id
    status: LeverStatus
    why: str
    against: str = Field(description="trial it was held against")
    runs: list[Measurement] = Field(description="the evidence")
    verdict: DraftVerdict


class DoNotRetry(Strict):
    """`do_not_retry.json`."""

    schema_version: Literal[1] = 1
    model: Id
    bans: list[Ban]


class MissingRun(Strict):
    """A run that a replayed policy asked for and that was never made."""

    trial: str
    rep: int = Field(ge=0)
    chain: Literal["steps", "confirm"]
    step: int = Field(ge=0, description="step that asked for it")
    why: str


class Compared(Strict):
    """One lever in the recorded loop and in the replayed one."""

    lever: Id
    recorded: LeverStatus
    replayed: LeverStatus
    same: bool


class Replay(Reasoned):
    """`replay.json`: a policy played over recorded runs."""

    schema_version: Literal[1] = 1
    decision: Decision = Field(description="what was replayed")
    recorded_decision: Decision
    same_policy: bool = Field(description="whether decision and levers are the recorded ones")
    levers: list[Compared]
    recorded_best: str
    best: str
    recorded_steps: int = Field(ge=0)
    steps: int = Field(ge=0)
    missing: list[MissingRun] = Field(description="empty: every run that was needed exists")
    used: int = Field(ge=0, description="recorded runs that the policy asked for")
    unused: list[Measurement] = Field(description="recorded runs that it did not ask for")
    differing_step: str | None = Field(
        description="first recorded step file that the replay makes otherwise; null: none"
    )
