"""`--executor slurm-bounded`: the official SLURM executor, with an end to every wait.

Submission, cancelling and logs are inherited. How the state of jobs is asked for and judged is
not, for the official executor (2.8.0)
- lengthens the pause between checks without job ends to three minutes;
- forgets its jobs, and waits for ever, when all queries of one check fail;
- waits for ever for jobs that are held, preempted or cannot start, and, asking accounting, for
  cancelled ones, which are `CANCELLED by <uid>` there;
- trusts one of squeue and sacct, also when accounting is off.
"""

# No `from __future__ import annotations` here: the plugin interface reads the settings' types.
import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_slurm import Executor as OfficialExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings as OfficialSettings
from snakemake_executor_plugin_slurm import common_settings
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from perfproof.cluster import scheduler, utc
from perfproof.cluster.scheduler import JobView
from perfproof.cluster.waiting import Deadlines, dated, scheduler_ending
from perfproof.schema.cluster import EndState

__all__ = ["Executor", "ExecutorSettings", "common_settings"]


@dataclass
class ExecutorSettings(OfficialSettings):  # type: ignore[misc]
    """The official settings and the bounds. Those about status queries have no effect here."""

    status_pause: int = field(
        default=5, metadata={"help": "Longest pause between two looks at the jobs, in seconds."}
    )
    grace: int = field(
        default=300,
        metadata={
            "help": "Seconds after which a job that is held, preempted or cannot start is "
            "cancelled and reported as failed."
        },
    )
    lost: int = field(
        default=120,
        metadata={"help": "Seconds after which a job that SLURM does not know counts as failed."},
    )
    queue_limit: int = field(
        default=0, metadata={"help": "Minutes that a job may wait in the queue; 0: no limit."}
    )

    def __post_init__(self) -> None:
        """Refuse bounds that are none."""
        super().__post_init__()
        for name, least in {"status_pause": 1, "grace": 1, "lost": 1, "queue_limit": 0}.items():
            value = getattr(self, name)
            if value < least:
                option = "--slurm-bounded-" + name.replace("_", "-")
                raise WorkflowError(f"{option}: {value}; expected {least} or more")


class Executor(OfficialExecutor):  # type: ignore[misc]
    """Asks squeue, then sacct, at a bounded pause, and ends jobs that would never end."""

    def __post_init__(self, test_mode: bool = False) -> None:
        """Take the bounds from the settings."""
        super().__post_init__(test_mode)
        settings = self.workflow.executor_settings
        queue_s = 60.0 * settings.queue_limit or None
        self._deadlines = Deadlines(settings.grace, settings.lost, queue_s=queue_s)
        self._seen: dict[str, JobView] = {}

    async def sleep(self) -> None:
        """The pause between two looks."""
        asked = self.workflow.remote_execution_settings.seconds_between_status_checks
        await asyncio.sleep(min(asked, self.workflow.executor_settings.status_pause))

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that ended, yield the others. No answer from SLURM ends no job."""
        now = utc.now()
        ids = [str(job.external_jobid) for job in active_jobs]
        views = await asyncio.to_thread(scheduler.look, ids, now)
        for job, job_id in zip(active_jobs, ids, strict=True):
            view = views.get(job_id)
            if view is None or not await self._ended(job, view, now):
                yield job

    async def _ended(self, job: SubmittedJobInfo, view: JobView, now: datetime) -> bool:
        """Whether the job ended, which is then reported."""
        view = dated(self._seen.get(view.job_id), view)
        self._seen[view.job_id] = view
        ending = scheduler_ending(view, now, self._deadlines)
        if ending is None:
            return False
        if ending is EndState.COMPLETED:
            self._drop_log(job)
            self.report_job_success(job)
            return True
        view = await asyncio.to_thread(scheduler.details, view)
        if view.state in scheduler.ACTIVE and not await asyncio.to_thread(
            scheduler.cancel, view.job_id
        ):
            return False
        self.report_job_error(job, msg=_message(view, ending), aux_logs=[_log(job)])
        return True

    def _drop_log(self, job: SubmittedJobInfo) -> None:
        if not self.workflow.executor_settings.keep_successful_logs:
            Path(_log(job)).unlink(missing_ok=True)


def _log(job: SubmittedJobInfo) -> str:
    aux: dict[Any, Any] = job.aux or {}
    return str(aux.get("slurm_logfile", ""))


def _message(view: JobView, ending: EndState) -> str:
    nodes = f" on {view.nodes}" if view.nodes else ""
    return f"SLURM job {view.job_id}{nodes} ended as {ending.value}; SLURM said: {view.said}. "
