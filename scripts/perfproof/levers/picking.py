"""Which lever is taken next, with what run it begins, and how it leaves the queue."""

from __future__ import annotations

from perfproof.levers import evidence, order
from perfproof.levers.moves import changed, measure, noted, stop
from perfproof.levers.statistics import next_arm
from perfproof.schema.loop import Candidate, LoopState
from perfproof.training.trial import ids_of, trial_name


def pick(state: LoopState) -> LoopState:
    """Take the next lever that may pay from the queue, or stop."""
    claimed = next((result.claimed for result in state.results if result.claimed), {})
    waiting = [candidate_of(state, lever) for lever in state.queue]
    for candidate in order.ordered(waiting, claimed, state.boundness):
        if reason := order.cannot_pay(candidate, state):
            state = close(state, candidate.id, "hopeless", reason)
            continue
        return _start(state, candidate, order.score(candidate, claimed, state.boundness).why)
    return stop(state, "no lever is left that could pay")


def _start(state: LoopState, candidate: Candidate, why: str) -> LoopState:
    trial = trial_with(state, candidate.id)
    number = 1 + sum(record.order is not None for record in state.levers)
    begun = changed(
        state,
        candidate.id,
        status="testing",
        why="being measured",
        order=number,
        picked_because=why,
        against=state.best,
        trial=trial,
    ).model_copy(update={"current": candidate.id})
    begun = noted(begun, "LEVER_PICK", order=number, lever=candidate.id, reason=why)
    return ask(begun, candidate, f"{candidate.id}: {why}")


def trial_with(state: LoopState, lever: str) -> str:
    """Name of the best trial with one lever more."""
    return trial_name([*ids_of(state.best), lever])


def candidate_of(state: LoopState, lever: str) -> Candidate:
    """The lever as the loop's definition has it."""
    return next(candidate for candidate in state.spec.levers if candidate.id == lever)


def ask(state: LoopState, candidate: Candidate, why: str) -> LoopState:
    """Ask for the run that says most: of the lever, or of the best it is held against."""
    trial = trial_with(state, candidate.id)
    runs = evidence.runs(state)
    if not any(run.arm == state.best for run in runs):
        return measure(state, state.best, f"{why}; the best has no run on these nodes yet")
    return measure(state, next_arm(runs, state.best, trial, state.spec.decision), why)


def without_conflicts(state: LoopState, accepted: Candidate) -> LoopState:
    """The queue without the levers that cannot join what was accepted."""
    for lever in list(state.queue):
        if lever in accepted.conflicts:
            why = f"conflicts with {accepted.id}, which was accepted"
            state = close(state, lever, "not_eligible", why)
    return state


def close(state: LoopState, lever: str, status: str, why: str) -> LoopState:
    """A lever's end: its status, and the reason in one line."""
    queue = [waiting for waiting in state.queue if waiting != lever]
    closed = changed(state, lever, status=status, why=why)
    closed = closed.model_copy(update={"queue": queue, "current": None})
    return noted(closed, "DECISION", lever=lever, status=status, why=why)
