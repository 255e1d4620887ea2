"""Which collector a run gets, and the command line that starts it on all its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfproof.core.errors import InputError
from perfproof.core.victoria import INSTALL
from perfproof.schema.config import Cluster, Dtype
from perfproof.training.collectors.omnistat_identity import find_omnistat
from perfproof.training.collectors.store import find_server
from perfproof.training.workload import interpreter


@dataclass(frozen=True)
class Choice:
    """A collector. `program` is Omnistat's, `store` VictoriaMetrics'; `why` it is no other."""

    kind: Literal["omnistat", "sampler", "off"]
    store: Path | None = None
    program: Path | None = None
    why: str = ""


def choose(cluster: Cluster) -> Choice:
    """The cluster's collector. Raises InputError where what it asks for is not there.

    `auto` is Omnistat on AMD GPUs where it is installed with its store, else the sampler.
    """
    if cluster.telemetry == "off":
        return Choice("off")
    store = find_server(cluster.victoria_metrics)
    if cluster.telemetry == "sampler" or (cluster.telemetry == "auto" and cluster.vendor != "amd"):
        return Choice("sampler", store)
    try:
        return _omnistat(cluster, store)
    except InputError as fault:
        # What is named must be there; what is only looked for need not.
        if cluster.telemetry == "omnistat" or cluster.omnistat:
            raise
        return Choice("sampler", store, why=f"no Omnistat: {fault}")


def _omnistat(cluster: Cluster, store: Path | None) -> Choice:
    found = find_omnistat(cluster.omnistat)
    if store is None:
        raise InputError("victoria-metrics", "no such program, and Omnistat needs it", INSTALL)
    if cluster.launcher == "local" and not found.has_local_jobs:
        told = "this version needs a resource manager"
        raise InputError(found.program, told, "one with --localjob, or telemetry: sampler")
    return Choice("omnistat", store, found.program)


@dataclass(frozen=True)
class Where:
    """What a collector is told of the run."""

    folder: Path
    nodes: Sequence[str]
    job_id: str
    dtype: Dtype


def command(choice: Choice, cluster: Cluster, where: Where) -> list[str]:
    """The command line of the one process that stands for the collectors of all nodes."""
    words = ["--out", str(where.folder.resolve()), "--job-id", where.job_id]
    words += ["--interval-s", f"{cluster.sample_interval_s:g}"]
    module = [interpreter(), "-m", f"perfproof.training.collectors.{choice.kind}"]
    if choice.kind == "sampler":
        words += ["--nodes", str(len(where.nodes))]
        return [*_spread(cluster, len(where.nodes)), *module, *words]
    words += ["--program", str(choice.program), "--store", str(choice.store)]
    words += [word for node in where.nodes for word in ("--node", node)]
    words += ["--dtype", where.dtype]
    words += ["--counters"] if cluster.hardware_counters else []
    words += ["--local"] if cluster.launcher == "local" else []
    return [*module, *words]


def _spread(cluster: Cluster, nodes: int) -> list[str]:
    """srun for one process a node, in what the ranks have too: with the GPUs, and none withheld."""
    if cluster.launcher == "local":
        return []
    words = ["srun", "--overlap", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    words += ["--cpus-per-task=1", "--no-kill", "--kill-on-bad-exit=0", "--mem=0"]
    if cluster.gpus_per_node:
        words.append(f"--gpus-per-node={cluster.gpus_per_node}")
    return words
