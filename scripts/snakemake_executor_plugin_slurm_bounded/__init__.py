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
from typing import Any

from snakemake_executor_plugin_slurm import Executor as OfficialExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings as OfficialSettings
from snakemake_executor_plugin_slurm import common_settings
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

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

    def __init__(self, workflow: Any, logger: Any) -> None:
        """Take the bounds from the settings, before the thread that looks at the jobs starts."""
        # Only now: Snakemake imports all plugins when it starts, before the Snakefile has said
        # which checkout's package is the one to run.
        from perfproof.cluster.bounded import Watch

        self._watch: Any = Watch(self, workflow.executor_settings)
        super().__init__(workflow, logger)

    async def sleep(self) -> None:
        """The pause between two looks."""
        asked = self.workflow.remote_execution_settings.seconds_between_status_checks
        await asyncio.sleep(min(asked, self.workflow.executor_settings.status_pause))

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that ended, yield the others. No answer from SLURM ends no job."""
        async for job in self._watch.still_active(active_jobs):
            yield job
