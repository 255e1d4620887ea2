"""Which nodes a run has."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping

from perfproof.core.errors import InputError
from perfproof.schema.config import Cluster


def host_name(env: Mapping[str, str] = os.environ) -> str:
    """This machine's name, as SLURM knows it where SLURM runs."""
    return env.get("SLURMD_NODENAME") or socket.gethostname()


def node_list(cluster: Cluster, nodes: int, env: Mapping[str, str] = os.environ) -> list[str]:
    """The nodes of the allocation in SLURM's order, or this machine alone."""
    if cluster.launcher == "local":
        return [host_name(env)]
    compact = env.get("SLURM_JOB_NODELIST", "")
    if not compact:
        raise InputError("environment", "no SLURM_JOB_NODELIST", "a SLURM allocation for srun")
    command = ["scontrol", "show", "hostnames", compact]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    if len(names) < nodes:
        found = f"{len(names)} node(s) in the allocation"
        raise InputError("environment", found, f"{nodes}, as the recipe says")
    return names[:nodes]
