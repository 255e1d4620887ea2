"""Go on after Snakemake was interrupted, however: one command.

`python -m perfproof.cluster.resume -- snakemake --profile slurm perf_report` waits for what the
earlier Snakemake left running (`--cancel` ends it instead), removes its lock, and becomes the given
command with `--rerun-incomplete`. What those jobs finished is kept; nothing is submitted twice.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.cluster import orphans, scheduler, utc
from perfproof.cluster.waiting import Deadlines, dated, scheduler_ending
from perfproof.core.errors import InputError
from perfproof.core.step import Status, parser, run

_ASKS_EVERY_S = 2.0


@dataclass
class Settling:
    """The wait for the end of everything that an earlier Snakemake of `directory` left running."""

    directory: Path
    prefix: str
    cancel: bool
    deadlines: Deadlines
    limit_s: float
    latency_s: float
    say: Callable[[str], None] = print
    open: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    _seen: dict[str, scheduler.JobView] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def settle(self) -> None:
        """Wait, or cancel and wait. Processes first: once none can submit, no job appears."""
        end = time.monotonic() + self.limit_s
        self._wait(self._no_process, end, "processes of an earlier Snakemake")
        self._wait(self._no_job, end, "jobs of an earlier Snakemake")
        if self.open - self.cancelled:
            # A file system that caches shows this host the last files a little later.
            time.sleep(self.latency_s)

    def _wait(self, done: Callable[[], bool], end: float, what: str) -> None:
        while not done():
            if time.monotonic() >= end:
                found = f"{what} still there after {self.limit_s / 60:g} min"
                raise InputError(self.directory, found, "their end; nothing was started")
            time.sleep(min(_ASKS_EVERY_S, self.limit_s))

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self.say(what)

    def _no_process(self) -> bool:
        living = orphans.processes(self.directory)
        for process in living:
            if self.cancel and process.kind == "snakemake":
                found = f"Snakemake (process {process.pid}) still runs here"
                expected = f"its end first: kill -INT {process.pid}"
                raise InputError(self.directory, found, expected, "--cancel")
            if self.cancel and process.kind == "local job":
                orphans.end_process(process.pid)
            self._tell(f"waiting for process {process.pid} ({process.kind})")
        return not living

    def _no_job(self) -> bool:
        found = orphans.jobs(self.directory, self.prefix)
        if found is None:
            self._tell("waiting for an answer from SLURM")
            return False
        for job in found:
            word = "cancelling" if self.cancel else "waiting for"
            self._tell(f"{word} job {job.job_id} ({job.rule})")
            self.open.add(job.job_id)
            if self.cancel:
                self._cancel(job.job_id)
        self._end_stuck([job.job_id for job in found])
        return not found

    def _cancel(self, job_id: str) -> None:
        if job_id not in self.cancelled and scheduler.cancel(job_id):
            self.cancelled.add(job_id)

    def _end_stuck(self, job_ids: Sequence[str]) -> None:
        """Cancel jobs in states that do not change by themselves: held, or impossible to start."""
        now = utc.now()
        for job_id, view in scheduler.look(job_ids, now).items():
            self._seen[job_id] = dated(self._seen.get(job_id), view)
            ending = scheduler_ending(self._seen[job_id], now, self.deadlines)
            if ending and view.state in scheduler.ACTIVE:
                self._tell(f"cancelling job {job_id}: {ending.value} ({view.said})")
                self._cancel(job_id)


def resumed(command: Sequence[str]) -> list[str]:
    """The command with `--rerun-incomplete` as Snakemake's first option."""
    at = next((i for i, word in enumerate(command) if Path(word).name == "snakemake"), None)
    if at is None:
        raise InputError("command line", f"'{' '.join(command)}'", "-- snakemake …", "command")
    added = [] if {"--rerun-incomplete", "--ri"} & set(command) else ["--rerun-incomplete"]
    return [*command[: at + 1], *added, *command[at + 1 :]]


def directory_of(command: Sequence[str]) -> Path:
    """The working directory that the command names, else the current one."""
    for word, following in zip(command, [*command[1:], ""], strict=False):
        if word in ("-d", "--directory") and following:
            return Path(following)
        if word.startswith("--directory="):
            return Path(word.removeprefix("--directory="))
    return Path()


def _hold(directory: Path) -> None:
    """Let no second one in. The Snakemake that this process becomes goes on holding the file."""
    path = directory / ".snakemake" / "resume.lock"
    path.parent.mkdir(exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(path, "held by another resume", "one at a time") from None
    os.set_inheritable(handle, True)


def _step(arguments: argparse.Namespace) -> Status:
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    ready = resumed(command) if command else []
    directory = directory_of(command)
    if not directory.is_dir():
        raise InputError(directory, "no such directory", "Snakemake's working directory")
    if shutil.which("squeue") is None:
        raise InputError("PATH", "no squeue", "SLURM's commands; jobs may still run")
    _hold(directory)
    if not arguments.host_is_gone:
        orphans.check_host(directory)
    settling = Settling(
        directory,
        arguments.prefix,
        arguments.cancel,
        Deadlines(grace_s=arguments.grace_s),
        limit_s=60.0 * arguments.limit_min,
        latency_s=arguments.latency_s,
    )
    settling.settle()
    words = _unlocked(directory, settling)
    if ready:
        _become(ready, Status("ok", words))
    return Status("ok", words)


def _unlocked(directory: Path, settled: Settling) -> str:
    """Remove the lock, and say what was found."""
    stale = orphans.is_locked(directory)
    orphans.unlock(directory)
    lock = "removed the stale lock" if stale else "no lock was left"
    return f"{len(settled.open)} jobs were open, {len(settled.cancelled)} cancelled; {lock}"


def _become(command: Sequence[str], status: Status) -> None:
    """Turn into the command: signals and the exit code are its own."""
    print(status.line(), flush=True)
    sys.stderr.flush()
    try:
        os.execvp(command[0], list(command))
    except OSError as fault:
        raise InputError("command line", f"'{command[0]}': {fault.strerror}", "Snakemake") from None


def main() -> None:
    """Command line."""
    cli = parser("Go on after an interruption: settle what an earlier Snakemake left, then start.")
    cli.add_argument("--prefix", default="", help="only jobs with this prefix; default: all")
    cli.add_argument("--cancel", action="store_true", help="cancel its jobs instead of waiting")
    cli.add_argument("--limit-min", type=float, default=1440.0, help="wait no longer, minutes")
    cli.add_argument("--grace-s", type=float, default=300.0, help="for jobs that will not start")
    cli.add_argument("--latency-s", type=float, default=10.0, help="for files to become visible")
    cli.add_argument("--host-is-gone", action="store_true", help="ignore a lock of another host")
    cli.add_argument("command", nargs=argparse.REMAINDER, help="-- snakemake …, run at the end")
    run(_step, cli.parse_args())


if __name__ == "__main__":
    main()
