"""Small loops played through the real policy, from true effects and seeded noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from perfproof.core.files import write_record
from perfproof.levers import policy
from perfproof.levers.story.record import Loop
from perfproof.schema.base import Reason
from perfproof.schema.levers import EffectProof, Fingerprint
from perfproof.schema.loop import (
    Candidate,
    Decision,
    LoopSpec,
    LoopState,
    Measurement,
    ProofFinding,
    Result,
)

LEVEL = 100.0
# What becomes of one run: the result's fields in place of the usual ones.
Twist = Callable[[LoopState, Measurement], dict[str, Any]]


@dataclass(frozen=True)
class Truth:
    """What is true of a small world: gains by lever, spread of a run, and what goes wrong."""

    effects: Mapping[str, float]
    sd: float = 0.01
    seed: int = 0
    twist: Twist = field(default=lambda state, asked: {})


def spec(
    truth: Truth, decision: Decision | None = None, direction: str = "higher", **candidates: Any
) -> LoopSpec:
    """A loop over the levers of `truth`; `candidates` changes one's facts by its id."""
    return LoopSpec.model_validate(
        {
            "model": "orbit2",
            "workload": "embedded",
            "cluster": "local",
            "nodes": 1,
            "metric": "throughput_samples_per_s",
            "unit": "samples/s",
            "direction": direction,
            "baseline_digest": "00",
            "decision": decision or Decision(),
            "levers": [_candidate(lever, candidates.get(lever, {})) for lever in truth.effects],
        }
    )


def _candidate(lever: str, facts: dict[str, Any]) -> Candidate:
    proof = EffectProof(effects={lever: "on"})
    return Candidate.model_validate({"id": lever, "kind": "lever", "effect_proof": proof, **facts})


def result(truth: Truth, state: LoopState, asked: Measurement) -> Result:
    """The run that a state asks for, as the world gives it."""
    rng = np.random.default_rng([truth.seed, len(state.results)])
    levers = [] if asked.trial == "baseline" else asked.trial.split("+")
    sign = 1 if state.spec.direction == "higher" else -1
    effect = math.fsum(math.log1p(truth.effects[lever]) for lever in levers)
    value = LEVEL * math.exp(sign * effect + truth.sd * rng.standard_normal())
    fields: dict[str, Any] = {
        "measurement": asked,
        "ending": "measured",
        "cause": None,
        "value": value,
        "final_loss": 0.5,
        "non_finite_count": 0,
        "proof": [ProofFinding(lever=x, seen=True, what=f"{x} is on") for x in levers],
        "node_list": ["node-a"],
        "node_hours": 0.05,
        "fingerprint": Fingerprint(
            model="orbit2",
            arch="cpu",
            dtype="bfloat16" if "bf16" in levers else "float32",
            nodes=1,
        ),
    }
    fields |= truth.twist(state, asked)
    names = ("cause", "value", "final_loss", "non_finite_count", "node_list", "node_hours")
    reasons = {name: Reason.NOT_RECORDED for name in names if fields[name] is None}
    if fields["ending"] == "measured":
        reasons["cause"] = Reason.NOT_APPLICABLE
    return Result.model_validate({"reasons": reasons, **fields})


def play(
    truth: Truth, loop_spec: LoopSpec, steps: int = 10_000
) -> tuple[list[LoopState], list[LoopState]]:
    """All states of exploring (at most so many steps) and of the confirmation."""
    explored = _chain(truth, policy.begin(loop_spec), steps)
    return explored, _chain(truth, policy.confirm(explored[-1]), 10_000)


def _chain(truth: Truth, start: LoopState, steps: int) -> list[LoopState]:
    states = [start]
    while states[-1].action.kind == "measure" and len(states) <= steps:
        (asked,) = states[-1].action.measure
        states.append(policy.advance(states[-1], result(truth, states[-1], asked)))
    return states


def loop_of(truth: Truth, loop_spec: LoopSpec, ending: str = "complete") -> Loop:
    """A finished loop."""
    explored, confirmed = play(truth, loop_spec)
    return Loop(explored[-1], confirmed[-1], ending)


def write_steps(states: list[LoopState], folder: Path) -> None:
    """The step files of a chain."""
    for state in states:
        write_record(folder / f"{state.step}.json", state)
