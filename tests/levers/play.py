"""A loop played without any run: figures from true effects and seeded noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfproof.levers.policy import advance, begin, confirm
from perfproof.schema.base import Reason
from perfproof.schema.levers import EffectProof
from perfproof.schema.loop import (
    Candidate,
    Decision,
    LoopSpec,
    LoopState,
    Measurement,
    ProofFinding,
    Result,
)

PROOF = EffectProof(env={"X": "1"})


def candidate(name: str, **values: Any) -> Candidate:
    """A lever with a proof of effect."""
    return Candidate.model_validate({"id": name, "kind": "lever", "effect_proof": PROOF, **values})


def spec(*levers: Candidate | str, **decision: Any) -> LoopSpec:
    """A loop over these levers."""
    return LoopSpec(
        model="orbit2",
        workload="embedded",
        cluster="local",
        nodes=1,
        metric="throughput_samples_per_s",
        unit="samples/s",
        direction="higher",
        baseline_digest="0" * 64,
        decision=Decision.model_validate(decision),
        levers=[candidate(x) if isinstance(x, str) else x for x in levers],
    )


def result(asked: Measurement, value: float | None = 100.0, **values: Any) -> Result:
    """A run that was measured."""
    data: dict[str, Any] = {
        "measurement": asked,
        "ending": "measured",
        "cause": None,
        "value": value,
        "final_loss": 1.0,
        "non_finite_count": 0,
        "node_list": ["n1"],
        "node_hours": 0.1,
        "proof": [
            ProofFinding(lever=lever, seen=True, what="seen")
            for lever in asked.trial.split("+")
            if lever != "baseline"
        ],
        **values,
    }
    nulls = [name for name in ("cause", "value", "final_loss", "node_list") if data[name] is None]
    data["reasons"] = dict.fromkeys(nulls, Reason.NOT_APPLICABLE)
    return Result.model_validate(data)


def failed(asked: Measurement, cause: str = "python_exception") -> Result:
    """A run that the trial spoiled."""
    return result(asked, None, ending="failed", cause=cause, final_loss=None)


def lost(asked: Measurement, cause: str = "node_fail") -> Result:
    """A run that something else spoiled."""
    return result(asked, None, ending="infrastructure", cause=cause, final_loss=None)


@dataclass
class World:
    """True effects (ln figure) of levers, and noise of a run."""

    effects: dict[str, float] = field(default_factory=dict)
    sd: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def run(self, asked: Measurement) -> Result:
        """One run, as it would go."""
        gain = sum(self.effects.get(lever, 0.0) for lever in asked.trial.split("+"))
        return result(asked, 100.0 * math.exp(gain + self.sd * self.random.standard_normal()))


def play(
    state: LoopState, answer: Callable[[Measurement], Result], limit: int = 400
) -> list[LoopState]:
    """All steps from `state` to the stop."""
    states = [state]
    while states[-1].action.kind == "measure":
        assert len(states) < limit, "the loop does not end"
        states.append(advance(states[-1], answer(states[-1].action.measure[0])))
    return states


def explore(defined: LoopSpec, answer: Callable[[Measurement], Result]) -> list[LoopState]:
    """All steps of a loop before its confirmation."""
    return play(begin(defined), answer)


def confirmed(state: LoopState, answer: Callable[[Measurement], Result]) -> list[LoopState]:
    """All steps of the confirmation after `state`."""
    return play(confirm(state), answer)


def statuses(state: LoopState) -> dict[str, str]:
    """Status by lever."""
    return {record.id: record.status for record in state.levers}


def scripted(answers: Iterable[Callable[[Measurement], Result]]) -> Callable[[Measurement], Result]:
    """Answers in order, whatever is asked."""
    queue = list(answers)
    return lambda asked: queue.pop(0)(asked)
