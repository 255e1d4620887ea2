"""Which nodes a run has, and until when.

Inside a job that calls srun itself the executor has removed every SLURM variable but the job's
number, so SLURM is asked again.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfproof.core.errors import InputError

if TYPE_CHECKING:
    # Processes beside the training need a name of the node and not the schemas.
    from perfproof.schema.config import Cluster

_CALL_TIMEOUT_S = 30.0
_PAUSE_S = 5.0


@dataclass(frozen=True)
class Allocation:
    """The nodes of a run in SLURM's order; when SLURM takes them back, seconds since 1970."""

    nodes: list[str]
    end_unix_s: float | None = None


def host_name(env: Mapping[str, str] = os.environ) -> str:
    """This machine's name, as SLURM knows it where SLURM runs."""
    return env.get("SLURMD_NODENAME") or socket.gethostname()


def allocation(
    cluster: Cluster, nodes: int, env: Mapping[str, str] = os.environ, wait_s: float = 90.0
) -> Allocation:
    """The first `nodes` nodes of the job; this machine alone where no job or no srun is needed.

    A controller that does not answer is asked again for `wait_s` seconds.
    """
    job = env.get("SLURM_JOB_ID", "")
    if not job and cluster.launcher == "local":
        return Allocation([host_name(env)])
    if not job:
        raise InputError("environment", "no SLURM_JOB_ID", "a SLURM job: --profile slurm")
    told = _asked(["scontrol", "--oneliner", "show", "job", job], wait_s)
    end = _end(told)
    if cluster.launcher == "local":
        return Allocation([host_name(env)], end)
    listed = re.search(r"(?<!\w)NodeList=(\S+)", told)
    compact = listed[1] if listed else ""
    names = _asked(["scontrol", "show", "hostnames", compact], wait_s).split()
    if len(names) < nodes:
        found = f"{len(names)} node(s) in job {job}"
        raise InputError("SLURM", found, f"{nodes}, as the recipe says")
    return Allocation(names[:nodes], end)


def _end(told: str) -> float | None:
    found = re.search(r"(?<!\w)EndTime=(\d+)(?!\S)", told)
    return float(found[1]) if found else None


def _asked(argv: Sequence[str], wait_s: float) -> str:
    deadline = time.monotonic() + wait_s
    while True:
        said = ""
        try:
            done = subprocess.run(
                argv,
                env=os.environ | {"SLURM_TIME_FORMAT": "%s"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_CALL_TIMEOUT_S,
            )
            if done.returncode == 0:
                return done.stdout
            said = " ".join(done.stderr.split())
        except (OSError, subprocess.TimeoutExpired) as fault:
            said = str(fault)
        if time.monotonic() + _PAUSE_S > deadline:
            raise InputError("SLURM", said or "no answer", f"an answer to: {' '.join(argv)}")
        time.sleep(_PAUSE_S)
