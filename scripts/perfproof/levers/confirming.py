"""The last phase: the best recipe against the first baseline, in fresh interleaved pairs.

Only this measurement states a total gain: single steps were chosen because they looked good.
"""

from __future__ import annotations

from perfproof.levers import evidence, testing
from perfproof.levers.moves import measure, noted, stop
from perfproof.levers.picking import trial_with
from perfproof.levers.statistics import confirm
from perfproof.schema.loop import LoopState, Result


def begin(state: LoopState) -> LoopState:
    """Start the confirmation after `state`, or say that there is nothing to confirm."""
    fresh = state.model_copy(
        update={"step": 0, "phase": "confirm", "current": None, "events": [], "queue": []}
    )
    if fresh.noise is None or fresh.best == fresh.spec.start:
        return stop(fresh, "no lever was accepted: there is no gain to confirm")
    return _ask(fresh.model_copy(update={"nodes_since": len(fresh.results)}))


def probe(state: LoopState, lever: str) -> LoopState:
    """Hold one lever against the start at once: nothing is known of the noise, nothing decided."""
    trial = trial_with(state, lever)
    return _ask(state.model_copy(update={"phase": "confirm", "best": trial, "queue": []}))


def tell(state: LoopState, result: Result) -> LoopState:
    """Take one run in."""
    if result.ending == "failed":
        failed = evidence.in_a_row(state.results, "failed")
        if failed >= evidence.PATIENCE:
            return stop(state, f"{failed} runs of the confirmation failed: {result.cause}")
        return measure(state, result.measurement.trial, f"the run failed: {result.cause}")
    lever = state.spec.probe
    if lever and (unseen := evidence.unseen(result, lever)):
        return stop(state, f"{lever} did not take effect: {unseen[0]}")
    moved = testing.follow_nodes(state, result)
    if not evidence.valid(moved.results[-1]):
        what = "; ".join(moved.results[-1].differs) or f"no {state.spec.metric}"
        return stop(moved, f"the best cannot be held against the baseline: {what}")
    return _ask(moved)


def _ask(state: LoopState) -> LoopState:
    """Pairs in the order best, baseline, baseline, best, so that a steady drift cancels."""
    done = evidence.runs(state)
    pairs = state.spec.decision.confirmation_pairs
    if len(done) >= 2 * pairs:
        gain = confirm(done, state.best, state.spec.start, state.noise)
        confirmed = state.model_copy(update={"confirmation": gain})
        said = noted(confirmed, "CONFIRMED", best=state.best, gain=f"{gain.effect or 0:+.4f}")
        return stop(said, "all pairs were measured")
    arm = state.spec.start if len(done) % 4 in (1, 2) else state.best
    why = f"confirmation, run {len(done) + 1} of {2 * pairs}"
    return measure(state, arm, why)
