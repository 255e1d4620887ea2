"""What an ending means for a lever and its loop: one table. `docs/levers.md` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from perfproof.schema.cluster import Cause, EndState, RunEnding
from perfproof.schema.run import State

Ending = Literal["measured", "failed", "infrastructure"]
Again = Literal["no", "any nodes", "other nodes"]

LAUNCHER = "launcher"
NON_FINITE = "non_finite_loss"


@dataclass(frozen=True)
class Fault:
    """One row. `ending` says who answers: the trial (`failed`) or nobody (`infrastructure`)."""

    ending: Ending
    again: Again
    ends_loop: bool
    meaning: str

    @property
    def counts(self) -> str:
        """Whether it counts against the levers of the trial."""
        if self.ending == "infrastructure":
            return "no"
        return "no, it is a measurement" if self.ending == "measured" else "yes, banned when twice"


def _trial(meaning: str, again: Again = "any nodes") -> Fault:
    return Fault("failed", again, False, meaning)


def _site(meaning: str, again: Again = "any nodes") -> Fault:
    return Fault("infrastructure", again, False, meaning)


def _end(meaning: str) -> Fault:
    return Fault("infrastructure", "no", True, meaning)


FAULTS: Mapping[str, Fault] = {
    EndState.COMPLETED: Fault("measured", "no", False, "the run is a measurement"),
    NON_FINITE: Fault(
        "measured", "no", False, "completed, with a loss that is NaN or infinite: not comparable"
    ),
    Cause.DEVICE_MEMORY: _trial("out of GPU memory"),
    Cause.HOST_MEMORY: _trial("out of host memory"),
    Cause.GPU_MEMORY_FAULT: _trial("memory access fault on the GPU"),
    Cause.EXCEPTION: _trial("the trainer raised an exception"),
    Cause.ABORTED: _trial("aborted (exit code 134)"),
    Cause.SEGMENTATION_FAULT: _trial("segmentation fault (exit code 139)"),
    EndState.TIMEOUT: _trial("ran, and ran out of its time; the queue does not count"),
    Cause.HANG: _trial("wrote nothing for too long: lever, network or node", "other nodes"),
    Cause.COLLECTIVE: _trial("a collective broke, nothing says why", "other nodes"),
    Cause.KILLED: _trial("killed (exit code 137), nothing says by whom", "other nodes"),
    Cause.UNKNOWN: _trial("the log does not tell", "other nodes"),
    LAUNCHER: _site("failed before any rank wrote a line", "other nodes"),
    EndState.NODE_FAIL: _site("a node failed its probe (exit code 42) or SLURM's", "other nodes"),
    EndState.PREEMPTED: _site("SLURM took the nodes back"),
    EndState.LOST: _site("nobody knows how it ended"),
    EndState.TIMEOUT_WAITING: _site("the job did not start in time"),
    EndState.HELD: _end("SLURM holds the job: the next ones too"),
    EndState.UNSATISFIABLE: _end("no nodes can fulfil the request"),
    EndState.CANCELLED: _end("somebody cancelled it"),
    Cause.DISK_FULL: _end("the disk is full for every next run"),
    Cause.RANKS_ALONE: _end("every rank took itself for the only one: the cluster's settings"),
}
_STATES = {
    State.COMPLETED: EndState.COMPLETED,
    State.TIMEOUT: EndState.TIMEOUT,
    State.NODE_FAULT: EndState.NODE_FAIL,
    State.CANCELLED: EndState.CANCELLED,
    State.RUNNING: EndState.LOST,
}
# With these causes, ranks that wrote nothing were never started.
_OF_SILENT = frozenset({Cause.UNKNOWN, Cause.EXCEPTION, Cause.KILLED, Cause.COLLECTIVE})


def fault_of(cause: str) -> Fault:
    """The row of a cause; one that the table does not know counts as unknown."""
    return FAULTS.get(cause, FAULTS[Cause.UNKNOWN])


def cause_of(state: State, ending: RunEnding | None, *, silent: bool) -> str:
    """The word for how a run ended, a key of `FAULTS`.

    `state` is the manifest's, `ending` what was found out with the log and the scheduler, `silent`
    whether no rank wrote a line.
    """
    if ending is None:
        cause: Cause | EndState = _STATES.get(state, Cause.UNKNOWN)
    else:
        cause = ending.cause or ending.state
    failed = state is State.FAILED or (ending is not None and ending.state is EndState.FAILED)
    if failed and silent and cause in _OF_SILENT:
        return LAUNCHER
    return Cause.UNKNOWN.value if cause is EndState.FAILED else cause.value
