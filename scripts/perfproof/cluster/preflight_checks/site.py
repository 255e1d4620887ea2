"""What every check gets, and what it answers with."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfproof.schema.cluster import Check
from perfproof.schema.config import Cluster, ResolvedRecipe

_UNSET = re.compile(r"\$\w+|\$\{\w+\}")


@dataclass(frozen=True)
class Site:
    """A run that is asked for, and where: `directory` is Snakemake's working directory.

    `status_command` is the executor's; empty where only the profile says it.
    """

    root: Path
    directory: Path
    cluster: Cluster
    resolved: ResolvedRecipe
    profile: str
    status_command: str
    exclude_file: Path
    limit_s: float

    @property
    def file(self) -> str:
        """The cluster's file, for messages."""
        return f"config/clusters/{self.cluster.cluster}.yaml"


def ok(name: str, found: str) -> Check:
    """Nothing to do."""
    return Check(name=name, state="ok", found=_line(found))


def warn(name: str, found: str, remedy: str) -> Check:
    """A run can start, but may not end well."""
    return Check(name=name, state="warn", found=_line(found), remedy=_line(remedy))


def fail(name: str, found: str, remedy: str) -> Check:
    """A run cannot start, or cannot end well."""
    return Check(name=name, state="fail", found=_line(found), remedy=_line(remedy))


def not_applicable(name: str, why: str) -> Check:
    """Not looked at."""
    return Check(name=name, state="not_applicable", found=_line(why))


def _line(text: str) -> str:
    return " ".join(text.split()) or "nothing"


@dataclass(frozen=True)
class Answer:
    """What a command printed. `code` is None when it does not exist or did not end in time."""

    code: int | None
    out: str
    err: str

    @property
    def words(self) -> str:
        """Its complaint, or else what it said."""
        return " ".join((self.err or self.out).split())


def answer(argv: Sequence[str], limit_s: float) -> Answer:
    """Run a command, for at most `limit_s`."""
    try:
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"no answer within {limit_s:g} s")
    except OSError as fault:
        return Answer(None, "", f"{argv[0]}: {fault.strerror}")
    return Answer(done.returncode, done.stdout, done.stderr)


def expanded(text: str) -> tuple[str, str]:
    """`text` with its `$VARIABLES` filled in, and the first one that is not set (or nothing)."""
    full = os.path.expandvars(text)
    unset = _UNSET.search(full)
    return full, unset[0] if unset else ""


def silent(name: str, said: Answer) -> Check:
    """SLURM did not answer, which says nothing about the run."""
    return warn(name, f"SLURM gives no answer: {said.words}", "try again")
