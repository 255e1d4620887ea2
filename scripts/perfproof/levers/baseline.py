"""The first phase: repetitions of the baseline (A/A) give the noise of a run."""

from __future__ import annotations

from perfproof.levers import picking, testing
from perfproof.levers.evidence import known_noise, runs, same_failures, share_of_errors, valid
from perfproof.levers.moves import changed, measure, noted, stop
from perfproof.levers.statistics import detectable, noise_of
from perfproof.schema.loop import LoopState, Result

# Repetitions that differ from the first one in more than their nodes.
_UNLIKE = 2


def ask(state: LoopState) -> LoopState:
    """One more repetition. The first brings the claims that order the levers."""
    made = len(runs(state))
    why = f"repetition {made + 1} of {state.spec.decision.baseline_runs} of the baseline"
    return measure(state, state.spec.start, why, with_claims=not state.results)


def tell(state: LoopState, result: Result) -> LoopState:
    """Take one repetition in."""
    if result.ending == "failed":
        if same_failures(state.results, state.spec.start) > 1:
            return stop(state, f"the baseline fails: {result.cause}")
        return measure(state, state.spec.start, f"the baseline failed once: {result.cause}")
    if result.value is None:
        reason = result.reasons.get("value", "unknown")
        return stop(state, f"the baseline has no {state.spec.metric}: {reason}")
    if result.non_finite_count:
        return stop(state, f"the baseline has {result.non_finite_count} non-finite losses")
    moved = testing.follow_nodes(state, result)
    if not valid(moved.results[-1]):
        unlike = sum(not valid(r) for r in moved.results if r.ending == "measured")
        if unlike >= _UNLIKE:
            return stop(state, f"the baseline's repetitions differ: {'; '.join(result.differs)}")
    if len(runs(moved)) < state.spec.decision.baseline_runs:
        return ask(moved)
    return _close(moved)


def _close(state: LoopState) -> LoopState:
    """The noise is known: say what can be seen with it before anything is spent on levers."""
    spec = state.spec
    noise = noise_of(runs(state), known_noise(state))
    if noise is None:
        return stop(state, "the repetitions of the baseline give no noise")
    ineligible = state.results[-1].ineligible
    shares = share_of_errors(spec, ineligible)
    smallest = detectable(noise, shares, spec.decision)
    known = state.model_copy(
        update={"phase": "levers", "noise": noise, "shares": shares, "detectable": smallest}
    )
    said = noted(known, "BASELINE_DONE", noise=f"{noise.sd:.4f}", detectable=f"{smallest:.4f}")
    for record in state.levers:
        if record.status == "waiting" and record.id in ineligible:
            why = ineligible[record.id]
            said = changed(said, record.id, status="not_eligible", why=why)
    queue = [record.id for record in said.levers if record.status == "waiting"]
    return picking.pick(said.model_copy(update={"queue": queue}))
