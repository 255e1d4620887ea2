"""How a run ended: the manifest's word, the scheduler's word, and when to wait for more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.cluster.scheduler import ABSENT, ACTIVE, JobView
from perfproof.cluster.states import final_state
from perfproof.cluster.waiting import Deadlines, dated, scheduler_ending
from perfproof.schema.cluster import Cause, EndState, RunEnding
from perfproof.schema.run import State
from tests.cluster.runs import manifest

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
DEADLINES = Deadlines(grace_s=300, lost_s=120)
FINAL = ("COMPLETED", "FAILED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL")


def view(
    state: str, reason: str = "None", lasted_s: float = 0, exit_code: int | None = None
) -> JobView:
    return JobView(
        job_id="7",
        state=state,
        reason=reason,
        nodes="a1",
        submitted=NOON - timedelta(hours=9),
        started=None if state == "PENDING" else NOON - timedelta(hours=1),
        since=NOON - timedelta(seconds=lasted_s),
        said=f"{state} {reason}",
        exit_code=exit_code,
    )


def ended(own: State | None, seen: JobView | None, tail: str = "") -> RunEnding | None:
    code = {State.COMPLETED: 0, State.FAILED: 1}.get(own) if own else None
    return final_state(manifest(own, code) if own else None, seen, NOON, DEADLINES, tail)


def state_of(own: State | None, seen: JobView | None) -> EndState | None:
    ending = ended(own, seen)
    return ending.state if ending else None


@pytest.mark.parametrize(
    ("own", "seen", "state"),
    [
        (State.COMPLETED, view("RUNNING"), EndState.COMPLETED),
        (State.COMPLETED, view("FAILED"), EndState.COMPLETED),
        (State.COMPLETED, None, EndState.COMPLETED),
        (State.TIMEOUT, view("CANCELLED"), EndState.TIMEOUT),
        (State.NODE_FAULT, view("FAILED"), EndState.NODE_FAIL),
        (State.FAILED, view("FAILED"), EndState.FAILED),
        (State.FAILED, view("OUT_OF_MEMORY"), EndState.OUT_OF_MEMORY),
        (State.FAILED, view("NODE_FAIL"), EndState.NODE_FAIL),
        (State.CANCELLED, view("CANCELLED"), EndState.CANCELLED),
        (State.CANCELLED, view("TIMEOUT"), EndState.TIMEOUT),
        (State.CANCELLED, view("PREEMPTED"), EndState.PREEMPTED),
        (State.CANCELLED, view("NODE_FAIL"), EndState.NODE_FAIL),
        (State.CANCELLED, None, EndState.CANCELLED),
        (State.RUNNING, view("FAILED"), EndState.FAILED),
        (State.RUNNING, view("TIMEOUT"), EndState.TIMEOUT),
        (State.RUNNING, view("NODE_FAIL"), EndState.NODE_FAIL),
        (None, view("CANCELLED"), EndState.CANCELLED),
        (None, view("OUT_OF_MEMORY"), EndState.OUT_OF_MEMORY),
        (None, view("FAILED", "BadConstraints"), EndState.UNSATISFIABLE),
    ],
)
def test_settled_at_once(own: State | None, seen: JobView | None, state: EndState) -> None:
    assert state_of(own, seen) is state


@pytest.mark.parametrize(
    ("exit_code", "state"), [(137, EndState.OUT_OF_MEMORY), (1, EndState.FAILED)]
)
def test_a_rank_that_the_kernel_took_ran_out_of_memory(exit_code: int, state: EndState) -> None:
    """SLURM calls the job failed, or nothing yet, as long as its batch script lives."""
    tail = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.1."
    own = manifest(State.FAILED, exit_code)
    ending = final_state(own, view("RUNNING"), NOON, DEADLINES, tail)
    assert ending
    assert (ending.state, ending.cause, ending.blame) == (state, Cause.HOST_MEMORY, "run")


def test_a_full_disk_is_not_the_trials_fault() -> None:
    ending = ended(State.FAILED, None, "OSError: [Errno 28] No space left on device")
    assert ending
    assert (ending.cause, ending.blame) == (Cause.DISK_FULL, "infrastructure")


@pytest.mark.parametrize(
    ("own", "seen", "limit_s", "state"),
    [
        (None, view("PENDING", "JobHeldUser"), 300, EndState.HELD),
        (None, view("PENDING", "launch failed requeued held"), 300, EndState.HELD),
        (State.RUNNING, view("REQUEUE_HOLD"), 300, EndState.HELD),
        (None, view("PENDING", "PartitionNodeLimit"), 300, EndState.UNSATISFIABLE),
        (None, view("PENDING", "BadConstraints"), 300, EndState.UNSATISFIABLE),
        (None, view("PENDING", "QOSMaxNodePerJobLimit"), 300, EndState.UNSATISFIABLE),
        (None, view("PENDING", "AssocMaxGRESPerJob"), 300, EndState.UNSATISFIABLE),
        (State.RUNNING, view("PREEMPTED"), 300, EndState.PREEMPTED),
        (State.RUNNING, view(ABSENT), 120, EndState.LOST),
        (None, view(ABSENT), 120, EndState.LOST),
        (None, view("COMPLETED"), 120, EndState.LOST),
        (State.RUNNING, view("COMPLETED"), 120, EndState.LOST),
        (State.CANCELLED, view("COMPLETING"), 120, EndState.CANCELLED),
    ],
)
def test_settled_after_a_deadline(
    own: State | None, seen: JobView, limit_s: int, state: EndState
) -> None:
    assert state_of(own, view(seen.state, seen.reason, limit_s - 1)) is None
    assert state_of(own, view(seen.state, seen.reason, limit_s)) is state


@pytest.mark.parametrize(
    "reason",
    [
        "Resources",
        "Priority",
        "BeginTime",
        "None",
        "ReqNodeNotAvail, UnavailableNodes:b2",
        "QOSGrpNodeLimit",
        "QOSMaxJobsPerUserLimit",
        "AssocGrpGRES",
        "MaxGRESPerAccount",
        "Licenses",
        "Dependency",
    ],
)
def test_waiting_in_the_queue_is_no_ending(reason: str) -> None:
    assert state_of(None, view("PENDING", reason, lasted_s=1e6)) is None


def test_queue_time_never_counts_as_run_time() -> None:
    deadlines = Deadlines(run_s=1800)
    assert scheduler_ending(view("PENDING", "Priority", 1e6), NOON, deadlines) is None
    assert scheduler_ending(view("RUNNING"), NOON, deadlines) is EndState.TIMEOUT_WAITING
    assert scheduler_ending(view("RUNNING"), NOON, Deadlines(run_s=3600)) is None


def test_queue_limit_counts_from_submission() -> None:
    waits = view("PENDING", "Priority")
    assert scheduler_ending(waits, NOON, Deadlines(queue_s=9 * 3600)) is None
    late = final_state(None, waits, NOON, Deadlines(queue_s=9 * 3600 - 1))
    assert late
    assert (late.state, late.blame) == (EndState.TIMEOUT_WAITING, "unknown")
    assert late.scheduler_said == "PENDING Priority"


def test_no_answer_settles_nothing() -> None:
    assert ended(None, None) is None
    assert ended(State.RUNNING, None) is None


def test_one_fault_with_reasons_that_take_turns_keeps_its_date() -> None:
    first = view("PENDING", "PartitionConfig", lasted_s=60)
    assert dated(first, view("PENDING", "PartitionNodeLimit")).since == first.since
    assert dated(first, view("PENDING", "Priority")).since == NOON
    assert dated(None, view("PENDING")).since == NOON


def test_failure_has_cause_and_evidence() -> None:
    tail = "step 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB\n"
    ending = ended(State.FAILED, view("FAILED"), tail)
    assert ending
    assert (ending.cause, ending.blame, ending.exit_code) == (Cause.DEVICE_MEMORY, "run", 1)
    assert ending.evidence
    assert ending.evidence.startswith("torch.OutOfMemoryError")
    assert ending.explanation == "manifest: failed (exit); SLURM: FAILED None"


def test_exit_code_of_the_job_counts_where_the_run_left_none() -> None:
    ending = ended(State.RUNNING, view("FAILED", exit_code=134))
    assert ending
    assert (ending.exit_code, ending.cause) == (134, Cause.ABORTED)
    assert ending.reasons.keys() == {"evidence"}


@pytest.mark.parametrize("state", ["NODE_FAIL", "CANCELLED"])
def test_infrastructure_is_not_charged_to_the_run(state: str) -> None:
    ending = ended(State.RUNNING, view(state), "CUDA out of memory")
    assert ending
    assert (ending.blame, ending.cause) == ("infrastructure", None)


def test_hang_that_ran_into_the_time_limit_blames_nobody() -> None:
    ending = ended(State.TIMEOUT, view("RUNNING"), "Watchdog caught collective operation timeout")
    assert ending
    assert (ending.state, ending.cause, ending.blame) == (EndState.TIMEOUT, Cause.HANG, "unknown")


ANY_VIEW = st.builds(
    view,
    st.sampled_from([*FINAL, *sorted(ACTIVE), ABSENT, "CANCELLED", "PREEMPTED", "NEW_STATE"]),
    st.sampled_from(["None", "Priority", "JobHeldAdmin", "BadConstraints"]),
    st.floats(0, 1e5),
)


@given(st.sampled_from([None, *State]), st.none() | ANY_VIEW)
def test_every_case_gives_a_valid_record_or_waits(own: State | None, seen: JobView | None) -> None:
    ending = ended(own, seen)
    if own in (State.COMPLETED, State.FAILED, State.TIMEOUT, State.NODE_FAULT):
        assert ending
    if ending and ending.state is EndState.COMPLETED:
        assert own is State.COMPLETED
