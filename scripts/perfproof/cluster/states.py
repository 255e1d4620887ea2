"""How a run ended: its own files first, the scheduler second. A pure function."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from perfproof.cluster.causes import classify
from perfproof.cluster.scheduler import JobView
from perfproof.cluster.waiting import Deadlines, scheduler_ending
from perfproof.schema.base import Reason
from perfproof.schema.cluster import Cause, EndState, RunEnding
from perfproof.schema.run import Manifest, State

Blame = Literal["none", "run", "infrastructure", "unknown"]
Source = Literal["run", "scheduler", "both"]

_OWN = {
    State.COMPLETED: EndState.COMPLETED,
    State.FAILED: EndState.FAILED,
    State.TIMEOUT: EndState.TIMEOUT,
    State.NODE_FAULT: EndState.NODE_FAIL,
    State.CANCELLED: EndState.CANCELLED,
}
# Of these a run sees a signal, or a rank that dies: the scheduler knows why.
_WHY_KILLED = frozenset({EndState.PREEMPTED, EndState.NODE_FAIL, EndState.OUT_OF_MEMORY})
_WHY_SIGNALLED = _WHY_KILLED | {EndState.TIMEOUT}
_KILLED = 137
_UNCLEAR = frozenset({Cause.HANG, Cause.COLLECTIVE, Cause.KILLED, Cause.UNKNOWN})


def final_state(
    own: Manifest | None,
    scheduler: JobView | None,
    now: datetime,
    deadlines: Deadlines,
    tail: str = "",
) -> RunEnding | None:
    """How the run ended; None while it goes on, or while what is known does not settle it.

    `own` is the run's manifest, `scheduler` the job's view (None: SLURM gave no answer), `tail`
    the end of the training log, for the cause of a failure.
    """
    own_end = _OWN.get(own.state) if own else None
    said = scheduler_ending(scheduler, now, deadlines) if scheduler else None
    waited_s = (now - scheduler.since).total_seconds() if scheduler else 0.0
    if own_end is None:
        state, source = _by_scheduler(said, waited_s >= deadlines.lost_s)
    else:
        if scheduler and scheduler.state == "PREEMPTED":
            said = EndState.PREEMPTED
        patient = scheduler is not None and waited_s < deadlines.lost_s
        state, source = _by_run(own_end, said, patient)
    return _ending(state, source, own, scheduler, tail) if state else None


def _by_scheduler(said: EndState | None, waited: bool) -> tuple[EndState | None, Source]:
    """Without a finished manifest. A job that SLURM calls completed must have left one."""
    if said is EndState.COMPLETED:
        return (EndState.LOST if waited else None), "both"
    return said, "scheduler"


def _by_run(
    own_end: EndState, said: EndState | None, patient: bool
) -> tuple[EndState | None, Source]:
    """With a finished manifest. What it could not know, the scheduler may add."""
    if own_end is EndState.FAILED and said in _WHY_KILLED:
        return said, "both"
    if own_end is EndState.CANCELLED:
        if said in _WHY_SIGNALLED:
            return said, "both"
        if said is None and patient:
            return None, "both"
    return own_end, "run"


def _ending(
    state: EndState, source: Source, own: Manifest | None, view: JobView | None, tail: str
) -> RunEnding:
    exit_code = own.exit_code if own else None
    if exit_code is None and view:
        exit_code = view.exit_code
    cause, evidence = _cause(state, tail, exit_code)
    values = {
        "cause": cause,
        "evidence": evidence,
        "exit_code": exit_code,
        "scheduler_said": view.said if view else None,
    }
    if (state, cause, exit_code) == (EndState.FAILED, Cause.HOST_MEMORY, _KILLED):
        # The kernel took one rank at the limit; SLURM tells of it only when it takes them all.
        state = EndState.OUT_OF_MEMORY
    nulls = {name for name, value in values.items() if value is None}
    return RunEnding(
        state=state,
        blame=_blame(state, cause),
        rests_on=source,
        explanation=_explanation(own, view),
        reasons={name: _reason(name, cause, tail) for name in sorted(nulls)},
        **values,
    )


def _cause(state: EndState, tail: str, exit_code: int | None) -> tuple[Cause | None, str | None]:
    cause, evidence = classify(tail, exit_code)
    if state is EndState.FAILED or (state is EndState.TIMEOUT and cause is Cause.HANG):
        return cause, evidence
    if state is EndState.OUT_OF_MEMORY:
        return Cause.HOST_MEMORY, evidence if cause is Cause.HOST_MEMORY else None
    return None, None


def _blame(state: EndState, cause: Cause | None) -> Blame:
    if state is EndState.COMPLETED:
        return "none"
    if cause in _UNCLEAR or state is EndState.TIMEOUT_WAITING:
        return "unknown"
    if cause in (Cause.DISK_FULL, Cause.RANKS_ALONE):
        return "infrastructure"
    if state in (EndState.FAILED, EndState.TIMEOUT, EndState.OUT_OF_MEMORY):
        return "run"
    return "infrastructure"


def _reason(name: str, cause: Cause | None, tail: str) -> Reason:
    if name == "evidence" and cause is not None:
        return Reason.NOT_PRINTED if tail else Reason.NO_LOG
    if name in ("cause", "evidence"):
        return Reason.NOT_APPLICABLE
    return Reason.NOT_RECORDED


def _explanation(own: Manifest | None, view: JobView | None) -> str:
    manifest = f"{own.state.value} ({own.ended_by})" if own else "none"
    return f"manifest: {manifest}; SLURM: {view.said if view else 'no answer'}"
