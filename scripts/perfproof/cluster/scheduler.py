"""What SLURM says of jobs: the controller first, accounting where it knows no more.

squeue forgets a job some time after its end and says nothing while the controller is away; sacct
needs accounting, lags behind, and may hold a job that nobody has heard of since. So neither is
trusted alone, and no answer is never taken for an answer.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

ABSENT = "ABSENT"
ACTIVE = frozenset(
    {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED", "COMPLETING", "REQUEUED"}
    | {"STAGE_OUT", "SIGNALING", "RESIZING", "REQUEUE_FED"}
    | {"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)

# A command that cannot reach the controller fails by itself after 9 to 18 s.
_TIMEOUT_S = 30.0
_SQUEUE = ("squeue", "--array", "--noheader", "--states=all", "--format=%i|%T|%V|%S|%N|%r")
_SACCT = ("sacct", "--allocations", "--noheader", "--parsable2")
_SACCT_FIELDS = "--format=JobID,State,Submit,Start,NodeList,Reason,ExitCode"
_NO_SUCH_JOB = "Invalid job id"
# A value may hold blanks; it ends before the next key.
_KEY_AND_VALUE = re.compile(r"([\w:/]+)=(.*?)(?= [\w:/]+=|$)")
_TOLD = ("JobState", "Reason", "ExitCode", "Restarts", "RunTime", "NumNodes", "NodeList")


@dataclass(frozen=True)
class JobView:
    """One job as SLURM shows it at one moment. `state` is SLURM's word, or ABSENT.

    `since` is when the observer first saw this state and reason; `said` is what SLURM printed.
    """

    job_id: str
    state: str
    reason: str
    nodes: str
    submitted: datetime | None
    started: datetime | None
    since: datetime
    said: str
    exit_code: int | None = None


def look(job_ids: Sequence[str], now: datetime) -> dict[str, JobView]:
    """The views of the jobs of which SLURM has something to say; ABSENT where it knows no such job.

    A job without a view is one about which nobody answered: nothing follows for it.
    """
    if not job_ids:
        return {}
    queued = _from_squeue(job_ids, now)
    unknown = [i for i in job_ids if i not in (queued or {})]
    recorded = (_from_sacct(unknown, now) if unknown else None) or {}
    if queued is None:
        return recorded
    # A job that the controller has forgotten is not running, whatever accounting thinks.
    ended = {i: view for i, view in recorded.items() if view.state not in ACTIVE}
    return {i: _absent(i, now) for i in unknown} | ended | queued


def details(view: JobView) -> JobView:
    """The view with the exit code and with what `scontrol show job` prints, where it answers."""
    answer = ask(["scontrol", "--oneliner", "show", "job", view.job_id])
    if not answer:
        return view
    told = dict(_KEY_AND_VALUE.findall(answer.splitlines()[0]))
    said = " ".join(f"{key}={told[key]}" for key in _TOLD if key in told)
    return replace(view, said=said, exit_code=_exit_code(told.get("ExitCode", "")))


def cancel(job_id: str) -> bool:
    """Ask SLURM to end a job; whether it took the request."""
    return ask(["scancel", job_id]) is not None


def jobs_by_comment() -> dict[str, str]:
    """The last job of this user under each comment, of those that the controller remembers."""
    answer = ask(["squeue", "--me", "--noheader", "--states=all", "--format=%i|%k"])
    rows = [line.split("|", 1) for line in (answer or "").splitlines() if "|" in line]
    rows.sort(key=lambda row: int(re.sub(r"\D.*", "", row[0]) or 0))
    return {comment: job for job, comment in rows}


def known_nodes() -> frozenset[str] | None:
    """The names of all nodes of the cluster; None when SLURM gives no answer."""
    answer = ask(["sinfo", "--noheader", "--Node", "--all", "--format=%N"])
    return None if answer is None else frozenset(answer.split())


def _from_squeue(job_ids: Iterable[str], now: datetime) -> dict[str, JobView] | None:
    answer = ask([*_SQUEUE, f"--jobs={','.join(job_ids)}"])
    return None if answer is None else _views(answer, now)


def _from_sacct(job_ids: Iterable[str], now: datetime) -> dict[str, JobView] | None:
    answer = ask([*_SACCT, _SACCT_FIELDS, f"--jobs={','.join(job_ids)}"])
    return None if answer is None else _views(answer, now)


def _views(answer: str, now: datetime) -> dict[str, JobView]:
    views = (_view(line, now) for line in answer.splitlines() if line.count("|") >= 5)
    return {view.job_id: view for view in views}


def _view(line: str, now: datetime) -> JobView:
    job_id, state, submitted, started, nodes, reason, *more = line.split("|")
    return JobView(
        job_id=job_id,
        # Accounting writes `CANCELLED by 1000`.
        state=state.split()[0] if state.strip() else ABSENT,
        reason=reason,
        nodes="" if nodes == "None assigned" else nodes,
        submitted=_moment(submitted),
        started=_moment(started),
        since=now,
        said=f"{state} {reason}".strip(),
        exit_code=_exit_code(more[0]) if more else None,
    )


def _absent(job_id: str, now: datetime) -> JobView:
    said = "SLURM knows no such job"
    return JobView(job_id, ABSENT, "", "", submitted=None, started=None, since=now, said=said)


def _moment(epoch: str) -> datetime | None:
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else None


def _exit_code(written: str) -> int | None:
    """`42:0` is exit code 42; `0:9`, a death by signal 9, counts as 137, as shells say it."""
    parts = re.fullmatch(r"(\d+):(\d+)", written)
    if not parts:
        return None
    code, signal = int(parts[1]), int(parts[2])
    return 128 + signal if signal else code


def ask(argv: Collection[str]) -> str | None:
    """What a SLURM command prints; None when it fails, hangs or does not exist."""
    # A user's SQUEUE_USERS or SQUEUE_PARTITION would hide jobs.
    own = {name: value for name, value in os.environ.items() if not name.startswith("SQUEUE_")}
    try:
        done = subprocess.run(
            list(argv),
            env=own | {"SLURM_TIME_FORMAT": "%s"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return done.stdout
    return "" if _NO_SUCH_JOB in done.stderr else None
