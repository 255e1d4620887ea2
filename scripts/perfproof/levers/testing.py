"""The second phase: one lever after the other, each against the best so far."""

from __future__ import annotations

import math

from perfproof.levers import evidence
from perfproof.levers.moves import changed, measure, noted, record_of, stop
from perfproof.levers.picking import (
    ask,
    candidate_of,
    close,
    pick,
    trial_with,
    without_conflicts,
)
from perfproof.levers.statistics import drifted, judge
from perfproof.schema.loop import Candidate, Judgement, LoopState, Noise, Result

# A precision switch that moves the figure by less than this leaves the workload latency-bound.
LATENCY_BAND = 0.10
# A diagnostic is a measurement, not a decision: two runs of it are enough for its interval.
_DIAGNOSTIC_RUNS = 2


def tell(state: LoopState, result: Result) -> LoopState:
    """Take one run in: of the lever under test, or of the best it is held against."""
    lever = state.current
    if lever is None:
        raise ValueError("a run was told while no lever is tested")
    candidate, record = candidate_of(state, lever), record_of(state, lever)
    hours = record.node_hours + (result.node_hours or 0.0)
    state = changed(state, lever, runs=record.runs + 1, node_hours=hours)
    if result.measurement.trial == state.best:
        return _tell_best(state, candidate, result)
    return _tell_candidate(state, candidate, result)


def _tell_best(state: LoopState, candidate: Candidate, result: Result) -> LoopState:
    if result.ending == "failed":
        failed = evidence.in_a_row(state.results, "failed")
        if failed >= evidence.PATIENCE:
            return stop(state, f"the best trial failed {failed} times in a row: {result.cause}")
        return measure(state, state.best, f"the best trial failed: {result.cause}")
    moved = follow_nodes(state, result)
    if not evidence.valid(moved.results[-1]):
        unlike = sum(bool(r.differs) for r in moved.results[-evidence.PATIENCE :])
        if unlike >= evidence.PATIENCE:
            what = "; ".join(result.differs) or f"no {state.spec.metric}"
            return stop(moved, f"repetitions of the best trial differ: {what}")
        return measure(moved, state.best, "the repetition could not be compared")
    if drifted(evidence.runs(moved), moved.best, moved.noise):
        # Said, not acted on: candidate and best take turns, so the next run of the best follows.
        moved = noted(moved, "DRIFT_SEEN", best=moved.best)
    return _judge(moved, candidate)


def _tell_candidate(state: LoopState, candidate: Candidate, result: Result) -> LoopState:
    if result.ending == "failed":
        return _failed(state, candidate, result)
    moved = follow_nodes(state, result)
    refused = _refused(moved, candidate, moved.results[-1])
    if refused:
        return pick(close(moved, candidate.id, *refused))
    if moved.nodes_since == len(moved.results):
        return ask(moved, candidate, f"{candidate.id}: on other nodes than before")
    return _judge(moved, candidate)


def _failed(state: LoopState, candidate: Candidate, result: Result) -> LoopState:
    """Once may be chance; twice in the same way is the lever's."""
    trial = result.measurement.trial
    failures = record_of(state, candidate.id).failures + 1
    state = changed(state, candidate.id, failures=failures)
    if evidence.same_failures(state.results, trial) > 1 or failures >= evidence.PATIENCE:
        return pick(close(state, candidate.id, "failed", f"fails repeatedly: {result.cause}"))
    return measure(state, trial, f"{candidate.id} failed once: {result.cause}")


def _refused(state: LoopState, candidate: Candidate, result: Result) -> tuple[str, str] | None:
    """Why there is nothing to compare: integrity first, then the proof of effect, then loss."""
    if result.differs:
        return "not_comparable", "; ".join(result.differs)
    if result.value is None:
        return "not_comparable", f"no {state.spec.metric}: {result.reasons.get('value')}"
    if unseen := evidence.unseen(result, candidate.id):
        return "no_op", "; ".join(unseen)
    if not any(finding.lever == candidate.id for finding in result.proof):
        return "no_op", "the catalog names nothing that would prove an effect"
    if bad := evidence.loss_is_bad(state, result, candidate.changes_numerics):
        return "loss", bad
    return None


def follow_nodes(state: LoopState, result: Result) -> LoopState:
    """Another node set is nobody's fault: evidence starts anew, only the noise is kept.

    It starts with this run if that is of the best, else after it: nothing there to hold it against.
    """
    if not evidence.other_nodes(result):
        return state
    anew = result.model_copy(update={"differs": []})
    of_best = result.measurement.trial == state.best
    since = len(state.results) - of_best
    nodes = ",".join(result.node_list or [])
    moved = state.model_copy(update={"results": [*state.results[:-1], anew], "nodes_since": since})
    return noted(moved, "NODES_CHANGED", nodes=nodes)


def _judge(state: LoopState, candidate: Candidate) -> LoopState:
    trial = trial_with(state, candidate.id)
    judgement = judge(
        evidence.runs(state),
        state.best,
        trial,
        state.shares,
        state.spec.decision,
        _prior(state),
    )
    state = changed(state, candidate.id, judgement=judgement)
    if candidate.kind == "diagnostic":
        return _diagnose(state, candidate, judgement)
    spent = min(record_of(state, candidate.id).runs, len(state.results) - state.nodes_since)
    if judgement.verdict == "again":
        if spent < state.spec.decision.max_runs_per_lever:
            return ask(state, candidate, f"{candidate.id}: {_so_far(judgement)}")
        why = f"{_so_far(judgement)}: not decided in {spent} runs"
        return pick(close(state, candidate.id, "inconclusive", why))
    return _decide(state, candidate, judgement)


def _prior(state: LoopState) -> Noise | None:
    """Noise known from elsewhere: the catalog, other nodes, or before a lever was accepted.

    It counts only as far as the runs agree with it.
    """
    elsewhere = state.nodes_since or state.best != state.spec.start
    return state.noise if elsewhere else evidence.known_noise(state)


def _decide(state: LoopState, candidate: Candidate, judgement: Judgement) -> LoopState:
    why = _so_far(judgement)
    if judgement.verdict == "inconclusive":
        return pick(close(state, candidate.id, "inconclusive", why))
    if judgement.verdict == "reject":
        return pick(close(state, candidate.id, "rejected", why))
    if candidate.changes_model:
        why += "; it changes the model: not accepted without a study of what the model learns"
        return pick(close(state, candidate.id, "diagnosed", why))
    trial = trial_with(state, candidate.id)
    closed = close(state, candidate.id, "accepted", why)
    better = closed.model_copy(update={"best": trial})
    return pick(without_conflicts(better, candidate))


def _diagnose(state: LoopState, candidate: Candidate, judgement: Judgement) -> LoopState:
    if judgement.candidate_runs < _DIAGNOSTIC_RUNS or judgement.interval is None:
        spent = record_of(state, candidate.id).runs
        if spent < state.spec.decision.max_runs_per_lever:
            return ask(state, candidate, f"{candidate.id}: a second run gives the interval")
    why = _so_far(judgement)
    if candidate.discriminates and judgement.interval:
        bound = boundness(judgement.interval)
        why += f": {_BOUND_WORDS[bound]}"
        state = state.model_copy(update={"boundness": bound})
    return pick(close(state, candidate.id, "diagnosed", why))


def boundness(interval: tuple[float, float]) -> str:
    """What a precision switch says: latency-bound where it moves nothing, in either direction.

    It cannot tell compute-bound from bandwidth-bound: halving bytes speeds both.
    """
    low, high = (math.log1p(max(end, -0.999)) for end in interval)
    band = math.log1p(LATENCY_BAND)
    if -band < low and high < band:
        return "latency_bound"
    return "not_latency_bound" if low > band or high < -band else "unclear"


_BOUND_WORDS = {
    "latency_bound": "the workload is latency-bound",
    "not_latency_bound": "the workload is not latency-bound; compute or bandwidth cannot be told",
    "unclear": "whether the workload is latency-bound stays open",
}


def _so_far(judgement: Judgement) -> str:
    runs = f"{judgement.candidate_runs} and {judgement.best_runs} runs"
    if judgement.effect is None:
        return f"no effect known after {runs}"
    if judgement.interval is None:
        return f"{judgement.effect:+.1%} after {runs}"
    low, high = judgement.interval
    return f"{judgement.effect:+.1%} [{low:+.1%}, {high:+.1%}] after {runs}"
