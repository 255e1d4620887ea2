"""What the executor `slurm-bounded` does at each look at its jobs: judge, report, end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from perfproof.cluster import scheduler, utc
from perfproof.cluster.scheduler import JobView
from perfproof.cluster.settle import settle_job
from perfproof.cluster.waiting import Deadlines, dated, scheduler_ending
from perfproof.core.errors import InputError
from perfproof.schema.cluster import EndState


class Watch:
    """Keeps what was seen of the jobs of one `executor`; `settings` has its bounds."""

    def __init__(self, executor: Any, settings: Any) -> None:
        """`executor` reports ends to Snakemake."""
        self._executor = executor
        self._keep_logs: bool = settings.keep_successful_logs
        queue_s = 60.0 * settings.queue_limit or None
        self._deadlines = Deadlines(settings.grace, settings.lost, queue_s=queue_s)
        self._seen: dict[str, JobView] = {}

    async def still_active(
        self, active_jobs: Sequence[SubmittedJobInfo]
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
            self._executor.report_job_success(job)
            return True
        view = await asyncio.to_thread(scheduler.details, view)
        await asyncio.to_thread(self._record, job, view, now)
        if view.state in scheduler.ACTIVE and not await asyncio.to_thread(
            scheduler.cancel, view.job_id
        ):
            return False
        self._executor.report_job_error(job, msg=_message(view, ending), aux_logs=[_log(job)])
        return True

    def _record(self, job: SubmittedJobInfo, view: JobView, now: datetime) -> None:
        """Keep how the job of a run ended: a job that never started can leave no word itself."""
        run_dir = getattr(getattr(job.job, "params", None), "run_dir", None)
        if run_dir:
            try:
                settle_job(Path(str(run_dir)), view, now, self._deadlines)
            except (OSError, InputError) as fault:
                self._executor.logger.warning(
                    f"The ending of job {view.job_id} is not recorded: {fault}"
                )

    def _drop_log(self, job: SubmittedJobInfo) -> None:
        if not self._keep_logs:
            Path(_log(job)).unlink(missing_ok=True)


def _log(job: SubmittedJobInfo) -> str:
    aux: dict[Any, Any] = job.aux or {}
    return str(aux.get("slurm_logfile", ""))


def _message(view: JobView, ending: EndState) -> str:
    nodes = f" on {view.nodes}" if view.nodes else ""
    return f"SLURM job {view.job_id}{nodes} ended as {ending.value}; SLURM said: {view.said}. "
