"""The optimizer loop: what defines it, what it has seen, what it asks for next."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfproof.schema.base import Reasoned, Strict
from perfproof.schema.config import Id
from perfproof.schema.decision import Decision as Decision
from perfproof.schema.decision import Noise as Noise
from perfproof.schema.levers import EffectProof, Fingerprint

LeverStatus = Literal[
    "waiting",
    "testing",
    "accepted",
    "rejected",
    "inconclusive",
    "no_op",
    "not_comparable",
    "loss",
    "failed",
    "diagnosed",
    "not_eligible",
    "hopeless",
]


class Measurement(Strict):
    """One run that is asked for: results/<model>/trials/<trial>/nodes-<n>/rep-<rep>."""

    trial: str
    rep: int = Field(ge=0)


class ProofFinding(Strict):
    """Whether one thing that a lever must show was seen in a run."""

    lever: Id
    seen: bool | None = Field(description="null: the run does not say")
    what: str = Field(description="what was looked for, and what was there")


class Result(Reasoned):
    """What the policy learns from one run."""

    measurement: Measurement
    ending: Literal["measured", "failed", "infrastructure"] = Field(
        description="`failed`: the trial answers for it; `infrastructure`: it does not"
    )
    cause: str | None = Field(
        description="word of the table of faults; null: an ordinary measurement"
    )
    value: float | None = Field(description="primary figure, in its own unit")
    final_loss: float | None
    non_finite_count: int | None
    differs: list[str] = Field(
        default_factory=list, description="integrity fields unlike those of the run held against"
    )
    proof: list[ProofFinding] = Field(default_factory=list)
    node_list: list[str] | None
    node_hours: float | None = Field(description="nodes x duration, without the queue")
    fingerprint: Fingerprint = Field(default_factory=lambda: Fingerprint())
    claimed: dict[Id, float] = Field(
        default_factory=dict,
        description="levers that verified claims of this run name, with the share of step time "
        "at stake",
    )
    known_noise: list[Noise] = Field(
        default_factory=list, description="what the catalog knows of runs like this one"
    )
    ineligible: dict[Id, str] = Field(
        default_factory=dict,
        description="levers that make no sense under this run's conditions, with the reason",
    )


class Candidate(Strict):
    """A lever as the loop needs it: the catalog's facts, resolved for this loop."""

    id: Id
    kind: Literal["lever", "diagnostic"]
    conflicts: list[Id] = Field(default_factory=list, description="both directions")
    expected_low: float | None = Field(None, description="relative gain; null: unknown")
    expected_high: float | None = Field(None, description="relative gain; null: unknown")
    risk: Literal["low", "medium", "high"] = "low"
    classes: list[str] = Field(default_factory=list)
    changes_numerics: bool = False
    changes_model: bool = False
    effect_proof: EffectProof | None = Field(None, description="null: cannot be accepted")
    discriminates: bool = Field(
        False, description="a precision switch: tells latency-bound workloads from others"
    )
    asked: bool = Field(
        False, description="named in the settings: tried even where it is not expected to pay"
    )
    not_eligible: str | None = Field(
        None, description="why it is not tried whatever the baseline shows; null: it may be"
    )


class LoopSpec(Strict):
    """What defines a loop. Its digest is the loop's default name."""

    model: Id
    workload: str
    cluster: Id
    nodes: int = Field(ge=1)
    metric: str
    unit: str
    direction: Literal["higher", "lower"]
    start: str = Field("baseline", description="trial that the loop begins with, its baseline")
    first_rep: int = Field(0, ge=0, description="repetitions below it are not this loop's")
    probe: Id | None = Field(
        None,
        description="hold this lever against the start in fresh pairs, and do nothing else; "
        "null: a loop",
    )
    baseline_digest: str = Field(description="BLAKE3 of the baseline's resolved recipe")
    decision: Decision
    levers: list[Candidate] = Field(description="in the catalog's order")
    noise_prior: Noise | None = Field(None, description="noise known from elsewhere; null: none is")


class ProbeChoice(Reasoned):
    """`probe/choice.json`: the remedy that is tried after a report, if any."""

    lever: Id | None
    claim: str | None = Field(description="the verified claim that names it")
    pairs: int = Field(ge=0, description="pairs of runs that fit the limit")
    why: str


class Judgement(Reasoned):
    """What the statistics say of one lever so far. Effects are relative: 0.03 is 3 % better."""

    verdict: Literal["accept", "reject", "again", "inconclusive"]
    effect: float | None = Field(description="gain of the candidate over the best")
    interval: tuple[float, float] | None = Field(description="95 % interval of `effect`")
    shrunk: float | None = Field(description="`effect` pulled toward zero: what to expect of it")
    p_value: float | None = Field(description="one-sided, against no gain")
    p_bound: float | None = Field(description="what it must fall below at this look")
    candidate_runs: int = Field(ge=0)
    best_runs: int = Field(ge=0)
    noise: Noise | None
    detectable: float | None = Field(
        description="smallest gain found with the asked power within max_runs_per_lever"
    )


class LeverRecord(Reasoned):
    """One lever's way through the loop."""

    id: Id
    status: LeverStatus
    why: str = Field(description="the ending's reason, one line")
    order: int | None = Field(description="place in the queue when it was taken; null: never")
    picked_because: str | None
    against: str | None = Field(description="the best trial it was held against")
    trial: str | None = Field(description="the trial that had it")
    judgement: Judgement | None
    runs: int = Field(0, ge=0, description="runs made for it, those of the best among them")
    node_hours: float = Field(0.0, ge=0)
    failures: int = Field(0, ge=0, description="runs that failed and that it answers for")


class Action(Strict):
    """What happens next."""

    kind: Literal["measure", "stop"]
    measure: list[Measurement] = Field(default_factory=list)
    against: Measurement | None = Field(
        None, description="run whose integrity the measured one must share; null: there is none"
    )
    with_claims: bool = Field(False, description="verified claims of the run are wanted too")
    why: str


class LoopState(Strict):
    """`steps/<s>.json`: everything the loop knows after step s."""

    schema_version: Literal[1] = 1
    step: int = Field(ge=0)
    spec: LoopSpec
    phase: Literal["baseline", "levers", "confirm", "done"]
    best: str = Field(description="the best trial so far")
    noise: Noise | None = Field(
        None, description="from the baseline's repetitions; null: not known yet"
    )
    detectable: float | None = Field(
        None, description="smallest relative gain that a lever's runs can show; null: no noise yet"
    )
    shares: int = Field(
        0, ge=0, description="levers that share the loop's error budget; 0: not yet known"
    )
    boundness: Literal["latency_bound", "not_latency_bound", "unclear"] | None = Field(
        None, description="answer of the precision switch; null: not asked"
    )
    confirmation: Judgement | None = Field(
        None, description="the best against the first baseline, fresh pairs; null: not measured"
    )
    levers: list[LeverRecord]
    queue: list[Id] = Field(description="levers that wait, next first")
    current: Id | None = Field(None, description="the lever that is tested; null: none is")
    results: list[Result] = Field(description="all runs so far, in order")
    nodes_since: int = Field(
        0, ge=0, description="index of the first result on the present node set"
    )
    events: list[str] = Field(
        default_factory=list, description="what happened in this step: EVENT key=value …"
    )
    action: Action
