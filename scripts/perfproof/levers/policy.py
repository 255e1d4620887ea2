"""The loop's policy: what it knows and one new result give what it knows next, and what to do.

Pure: the workflow, the replay over recorded runs and the simulator call the same two functions.
A loop measures its baseline until the noise of a run is known, then takes levers one at a time from
a queue, each held against the best so far in interleaved runs, and stops when the queue is empty.
Budgets and the STOP file are not its concern: they end the chain of steps from outside, so that a
raised budget goes on from the last step.
"""

from __future__ import annotations

from perfproof.levers import baseline, confirming, testing
from perfproof.levers.evidence import PATIENCE, in_a_row
from perfproof.levers.faults import fault_of
from perfproof.levers.moves import event, measure, records_of, stop
from perfproof.schema.loop import Action, LoopSpec, LoopState, Result


def begin(spec: LoopSpec) -> LoopState:
    """Step 0: nothing is known; the baseline comes first, or the pairs of a probe."""
    records = records_of(spec)
    state = LoopState(
        step=0,
        spec=spec,
        phase="baseline",
        best=spec.start,
        levers=records,
        queue=[record.id for record in records if record.status == "waiting"],
        results=[],
        events=[event("LOOP_START", model=spec.model, metric=spec.metric)],
        action=Action(kind="stop", why="not begun"),
    )
    return confirming.probe(state, spec.probe) if spec.probe else baseline.ask(state)


def advance(state: LoopState, result: Result) -> LoopState:
    """The next step, from the result of the run that the last one asked for."""
    if state.action.kind == "stop" or result.measurement not in state.action.measure:
        raise ValueError(f"{result.measurement} was not asked for in step {state.step}")
    told = state.model_copy(
        update={
            "step": state.step + 1,
            "results": [*state.results, result],
            "events": [_told(result)],
        }
    )
    if result.ending == "infrastructure":
        return _again(told, result)
    phases = {"baseline": baseline.tell, "levers": testing.tell, "confirm": confirming.tell}
    return phases[told.phase](told, result)


def confirm(state: LoopState) -> LoopState:
    """From where exploring ended (by itself or by a budget): measure the total gain afresh."""
    return confirming.begin(state)


def _again(state: LoopState, result: Result) -> LoopState:
    """Not the trial's fault: the same trial once more, in a repetition of its own."""
    fault = fault_of(str(result.cause))
    if fault.ends_loop:
        return stop(state, f"{result.cause}: {fault.meaning}")
    if in_a_row(state.results, "infrastructure") >= PATIENCE:
        return stop(
            state, f"{PATIENCE} runs in a row failed for no fault of theirs: {result.cause}"
        )
    why = f"the last run ended for no fault of its own: {result.cause}"
    return measure(state, result.measurement.trial, why)


def _told(result: Result) -> str:
    value = "null" if result.value is None else f"{result.value:.6g}"
    trial, rep = result.measurement.trial, result.measurement.rep
    return event("RUN_DONE", trial=trial, rep=rep, ending=result.ending, value=value)
