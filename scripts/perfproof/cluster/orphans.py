"""What an earlier Snakemake of a working directory left running: processes here, jobs in SLURM.

Killing Snakemake ends neither the jobs it submitted, nor an `sbatch` that is under way, nor the
shell command of a local rule. Each goes on writing its files, so a second Snakemake must not start
before they have ended.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import psutil

from perfproof.cluster.scheduler import ask
from perfproof.core.errors import InputError

# The executor names all jobs of one invocation alike: `<prefix>_<uuid>`, or a bare uuid.
_NAME = re.compile(r"(?:(?P<prefix>[A-Za-z0-9_-]+)_)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SQUEUE = ("squeue", "--array", "--noheader", "--format=%i\t%T\t%j\t%k\t%Z")
_STRICT_SHELL = "set -euo pipefail; "
_INNER = frozenset({"remote", "subprocess"})


@dataclass(frozen=True)
class Process:
    """A live process of the working directory. `snakemake` is one that schedules jobs."""

    pid: int
    kind: Literal["snakemake", "submission", "local job"]


@dataclass(frozen=True)
class Job:
    """A job of an earlier invocation that SLURM has not ended."""

    job_id: str
    state: str
    name: str
    rule: str


def jobs(directory: Path, prefix: str) -> list[Job] | None:
    """The open jobs that Snakemakes of `directory` submitted; None when SLURM gives no answer.

    With a `prefix`, only those whose name it begins.
    """
    answer = ask([*_SQUEUE, f"--user={os.geteuid()}"])
    if answer is None:
        return None
    rows = [line.split("\t") for line in answer.splitlines()]
    return [
        Job(job_id, state, name, comment.partition("_wildcards_")[0].removeprefix("rule_"))
        for job_id, state, name, comment, where in (row for row in rows if len(row) == 5)
        if (match := _NAME.fullmatch(name))
        and (not prefix or match["prefix"] == prefix)
        and Path(where).resolve() == directory.resolve()
    ]


def processes(directory: Path) -> list[Process]:
    """This machine's processes that schedule, submit or do a local job of `directory`."""
    wanted, own = directory.resolve(), _own_family()
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid in own or Path(process.cwd()) != wanted:
                continue
            kind = _kind(process)
            if kind:
                found.append(Process(process.pid, kind))
    return found


def _own_family() -> set[int]:
    me = psutil.Process()
    return {me.pid, *(parent.pid for parent in me.parents())}


def _kind(process: psutil.Process) -> Literal["snakemake", "submission", "local job"] | None:
    words = process.cmdline()
    if process.status() == psutil.STATUS_ZOMBIE or not words or _in_a_job(process):
        return None
    if any(_is_command(word, "sbatch") for word in words[:2]) or _shell_text(words, "sbatch "):
        return "submission"
    program = words[0].rpartition("/")[2]
    if program.startswith(("python", "snakemake")) and any(
        _is_command(word, "snakemake") for word in words[:3]
    ):
        return "local job" if _INNER & set(words) else "snakemake"
    return "local job" if _shell_text(words, _STRICT_SHELL) else None


def _in_a_job(process: psutil.Process) -> bool:
    """Whether it belongs to a SLURM job, other than one that this process is in too."""
    job = process.environ().get("SLURM_JOB_ID")
    return job is not None and job != os.environ.get("SLURM_JOB_ID")


def _is_command(word: str, name: str) -> bool:
    return word.rpartition("/")[2] == name


def _shell_text(words: Sequence[str], start: str) -> bool:
    return len(words) == 3 and words[1] == "-c" and words[2].startswith(start)


def end_process(pid: int) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                each.terminate()


def is_locked(directory: Path) -> bool:
    """Whether a Snakemake left its lock, or holds it."""
    locks = directory / ".snakemake" / "locks"
    return locks.is_dir() and any(locks.iterdir())


def check_host(directory: Path) -> None:
    """Refuse a lock that was taken on another host: nobody can see from here whether it lives."""
    owner = _owner_host(directory) if is_locked(directory) else None
    if owner and owner != platform.node():
        expected = f"this command on {owner}, or --host-is-gone if that host is down"
        raise InputError(directory / ".snakemake/locks", f"taken on {owner}", expected)


def _owner_host(directory: Path) -> str | None:
    """Host of the Snakemake that took the lock: the last one that started before it did."""
    locked = max(p.stat().st_mtime for p in (directory / ".snakemake" / "locks").iterdir())
    logs = sorted((directory / ".snakemake" / "log").glob("*.snakemake.log"), reverse=True)
    earlier = (log for log in logs if (start := _start(log)) and start.timestamp() <= locked)
    log = next(earlier, None)
    return next(_hosts(log), None) if log else None


def _start(log: Path) -> datetime | None:
    """When the Snakemake of this log started: the file is named after it."""
    with contextlib.suppress(ValueError):
        return datetime.strptime(log.name, "%Y-%m-%dT%H%M%S.%f.snakemake.log")
    return None


def _hosts(log: Path) -> Iterator[str]:
    with log.open(encoding="utf-8", errors="replace") as stream:
        for line, _ in zip(stream, range(40), strict=False):
            if line.startswith("  Host: "):
                yield line.removeprefix("  Host: ").strip()


def unlock(directory: Path) -> None:
    """Remove the lock, as `snakemake --unlock` does. Only when no Snakemake lives."""
    shutil.rmtree(directory / ".snakemake" / "locks", ignore_errors=True)
