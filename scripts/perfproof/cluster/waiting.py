"""When to stop waiting for a job: what a scheduler's state and reason mean for its end."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from perfproof.cluster.scheduler import ABSENT, JobView
from perfproof.schema.cluster import EndState


@dataclass(frozen=True)
class Deadlines:
    """How long, in seconds, a state that does not change by itself may last.

    `grace_s` for a job that will not start or was preempted, `lost_s` for one that nobody knows.
    `run_s` counts from the job's start, so that waiting in the queue never uses it up; `queue_s`
    counts from submission. None is no limit: SLURM has its own.
    """

    grace_s: float = 300.0
    lost_s: float = 120.0
    run_s: float | None = None
    queue_s: float | None = None


_ENDED = {
    "COMPLETED": EndState.COMPLETED,
    "FAILED": EndState.FAILED,
    "TIMEOUT": EndState.TIMEOUT,
    "DEADLINE": EndState.TIMEOUT,
    "OUT_OF_MEMORY": EndState.OUT_OF_MEMORY,
    "NODE_FAIL": EndState.NODE_FAIL,
    "BOOT_FAIL": EndState.NODE_FAIL,
    "LAUNCH_FAILED": EndState.NODE_FAIL,
    "RECONFIG_FAIL": EndState.NODE_FAIL,
    "CANCELLED": EndState.CANCELLED,
    "REVOKED": EndState.CANCELLED,
}
_HELD_STATES = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_HELD = re.compile(r"held|JobHoldMaxRequeue|DependencyNeverSatisfied", re.IGNORECASE)
# What waiting alone cannot change: the request itself is outside what it may have.
_UNSATISFIABLE = re.compile(
    r"BadConstraints|Partition(Node|Time)Limit|PartitionConfig|AccountNotAllowed|QOSNotAllowed"
    r"|Invalid(Account|QOS)|ReservationDeleted|MaxMemPerLimit|QOSMin\w+"
    r"|(Assoc|QOS)Max\w+Per(Job|Node)(Limit)?"
)


def scheduler_ending(view: JobView, now: datetime, deadlines: Deadlines) -> EndState | None:
    """How the job ended in the scheduler's eyes, or None while there is reason to wait."""
    if view.state == "FAILED" and _UNSATISFIABLE.search(view.reason):
        # sbatch refused it and left this behind: it never ran.
        return EndState.UNSATISFIABLE
    if view.state in _ENDED:
        return _ENDED[view.state]
    lasted_s = (now - view.since).total_seconds()
    stuck = _stuck(view)
    if stuck:
        limit_s = deadlines.lost_s if stuck is EndState.LOST else deadlines.grace_s
        return stuck if lasted_s >= limit_s else None
    return EndState.TIMEOUT_WAITING if _overdue(view, now, deadlines) else None


def dated(previous: JobView | None, view: JobView) -> JobView:
    """The view, dated from when its state, and what that state means, were first seen.

    The reasons of one fault take turns (PartitionConfig, PartitionNodeLimit): that is no change.
    """
    if previous and (previous.state, _stuck(previous)) == (view.state, _stuck(view)):
        return replace(view, since=previous.since)
    return view


def _stuck(view: JobView) -> EndState | None:
    """The ending of a state that will last, if this is one."""
    if view.state == ABSENT:
        return EndState.LOST
    if view.state == "PREEMPTED":
        return EndState.PREEMPTED
    if view.state in _HELD_STATES:
        return EndState.HELD
    if view.state != "PENDING":
        return None
    if _HELD.search(view.reason):
        return EndState.HELD
    return EndState.UNSATISFIABLE if _UNSATISFIABLE.search(view.reason) else None


def _overdue(view: JobView, now: datetime, deadlines: Deadlines) -> bool:
    waits = view.state == "PENDING"
    since = view.submitted if waits else view.started
    limit_s = deadlines.queue_s if waits else deadlines.run_s
    if since is None or limit_s is None:
        return False
    return (now - since).total_seconds() > limit_s
