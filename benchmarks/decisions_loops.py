"""Loops played by the simulator: through the real policy, and by the rules it is held against.

A loop is a list of true effects, one a lever, and the noise of its runs in order. All rules see the
same noise: run i of a loop has the same disturbance whatever is measured then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.special import stdtr

from benchmarks.decisions_noise import Array
from perfproof.levers.policy import advance, begin
from perfproof.schema.base import Reason
from perfproof.schema.levers import EffectProof
from perfproof.schema.loop import (
    Candidate,
    Decision,
    LoopSpec,
    LoopState,
    Measurement,
    Noise,
    ProofFinding,
    Result,
)

NODES = ["node0"]
_NULLS = ("cause", "final_loss", "non_finite_count", "node_hours")


@dataclass(frozen=True)
class Lever:
    """What became of one lever: true effect, status, runs it cost."""

    effect: float
    status: str
    runs: int


@dataclass(frozen=True)
class Loop:
    """One played loop: its levers, all its runs, those before the first lever."""

    levers: list[Lever]
    runs: int
    baseline_runs: int

    def false_accept(self) -> bool:
        """Whether a lever without effect, or a harmful one, was accepted."""
        return any(lever.status == "accepted" and lever.effect <= 0 for lever in self.levers)

    def regret(self) -> float:
        """ln of the best reachable gain minus that of what was accepted."""
        best = sum(math.log1p(lever.effect) for lever in self.levers if lever.effect > 0)
        taken = [lever for lever in self.levers if lever.status == "accepted"]
        return best - sum(math.log1p(lever.effect) for lever in taken)


Rule = Callable[[Sequence[float], Array], Loop]


def spec_of(count: int, decision: Decision, prior: Noise | None = None) -> LoopSpec:
    """A loop over `count` levers of which the catalog expects nothing."""
    proof = EffectProof(env={"SIMULATED": "1"})
    levers = [Candidate(id=f"lever{n:02d}", kind="lever", effect_proof=proof) for n in range(count)]
    return LoopSpec(
        model="simulated",
        workload="simulated",
        cluster="simulated",
        nodes=1,
        metric="throughput_samples_per_s",
        unit="samples/s",
        direction="higher",
        baseline_digest="0",
        decision=decision,
        levers=levers,
        noise_prior=prior,
    )


def result_of(asked: Measurement, value: float, levers: Sequence[str]) -> Result:
    """A measured run without faults, in which all levers of its trial took effect."""
    return Result(
        measurement=asked,
        ending="measured",
        value=math.exp(value),
        node_list=NODES,
        node_hours=None,
        proof=[ProofFinding(lever=lever, seen=True, what="SIMULATED") for lever in levers],
        cause=None,
        final_loss=None,
        non_finite_count=None,
        reasons=dict.fromkeys(_NULLS, Reason.NOT_APPLICABLE),
    )


def through_the_policy(decision: Decision, prior: Noise | None = None) -> Rule:
    """The rule of this repository: whole loops through `perfproof.levers.policy`."""

    def rule(effects: Sequence[float], noise: Array) -> Loop:
        spec = spec_of(len(effects), decision, prior)
        true = {lever.id: math.log1p(e) for lever, e in zip(spec.levers, effects, strict=True)}
        state = begin(spec)
        while state.action.kind == "measure":
            asked = state.action.measure[0]
            ids = [] if asked.trial == "baseline" else asked.trial.split("+")
            value = sum(true[lever] for lever in ids) + float(noise[len(state.results)])
            state = advance(state, result_of(asked, value, ids))
        return _loop_of(state, effects)

    return rule


def _loop_of(state: LoopState, effects: Sequence[float]) -> Loop:
    levers = [
        Lever(effect, record.status, record.runs)
        for effect, record in zip(effects, state.levers, strict=True)
    ]
    first = len(state.results) - sum(lever.runs for lever in levers)
    return Loop(levers, len(state.results), first)


def one_after_another(repeats: int, accepts: Callable[[Array, Array], bool]) -> Rule:
    """Measure the baseline, then each lever on top of the best, `repeats` runs each."""

    def rule(effects: Sequence[float], noise: Array) -> Loop:
        blocks = noise[: repeats * (len(effects) + 1)].reshape(-1, repeats)
        level, best = 0.0, blocks[0]
        levers = list[Lever]()
        for effect, block in zip(effects, blocks[1:], strict=True):
            values = level + math.log1p(effect) + block
            accepted = accepts(values, best)
            if accepted:
                level, best = level + math.log1p(effect), values
            levers.append(Lever(effect, "accepted" if accepted else "rejected", repeats))
        return Loop(levers, blocks.size, repeats)

    return rule


def any_improvement(candidate: Array, best: Array) -> bool:
    """One run each, any improvement."""
    return bool(candidate[0] > best[0])


def beyond_band(candidate: Array, best: Array) -> bool:
    """One run each, more than 2 % better."""
    return bool(candidate[0] - best[0] > math.log(1.02))


def welch(candidate: Array, best: Array) -> bool:
    """Welch's t-test, two-sided at 5 %, and better."""
    parts = candidate.var(ddof=1) / len(candidate), best.var(ddof=1) / len(best)
    error = math.sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(part**2 / (len(candidate) - 1) for part in parts)
    return bool(stdtr(df, -(candidate.mean() - best.mean()) / error) < 0.025)
