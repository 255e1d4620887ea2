"""What a run asks of SLURM. Pure functions of the cluster's file and the resolved recipe."""

from __future__ import annotations

from dataclasses import dataclass

from perfproof.schema.config import Cluster, ResolvedRecipe


@dataclass(frozen=True)
class Request:
    """Resources of one launch job by Snakemake's names; None is a resource that is not set."""

    mpi: str | None
    nodes: int
    tasks: int
    cpus_per_task: int | None
    mem_mb: int
    """0 is not passed on: Snakemake wants a number here."""
    runtime: int
    slurm_partition: str | None
    slurm_account: str | None
    constraint: str | None
    slurm_extra: str | None


def request(cluster: Cluster, resolved: ResolvedRecipe, exclude_flag: str = "") -> Request:
    """The request of a run.

    `mpi` makes the executor start the job's command bare, so that the command can call srun. It
    wants two tasks or more: a single rank gets the room of two, of half its CPUs each.
    """
    spread = cluster.launcher == "srun"
    slots = resolved.ranks // resolved.nodes if resolved.ranks > 1 else 2
    per_node = slots if spread else 1
    return Request(
        mpi="srun" if spread else None,
        nodes=resolved.nodes,
        tasks=max(2, resolved.ranks) if spread else 1,
        cpus_per_task=_cpus(cluster, per_node),
        mem_mb=cluster.mem_mb or 0,
        runtime=cluster.runtime_min,
        slurm_partition=cluster.partition,
        slurm_account=cluster.account,
        constraint=cluster.constraint,
        slurm_extra=" ".join(_extra(cluster, per_node, exclude_flag)) or None,
    )


def _cpus(cluster: Cluster, tasks_per_node: int) -> int | None:
    return max(1, cluster.cpus_per_node // tasks_per_node) if cluster.cpus_per_node else None


def _extra(cluster: Cluster, tasks_per_node: int, exclude_flag: str) -> list[str]:
    """Options that the executor has no resource for, or for which its own means something else.

    Its `gres` makes `tasks` a number a GPU, and without a number a node SLURM may put all ranks but
    one on the first node. `--exclude` is last: what follows a node's name must not be a blank.
    """
    words = []
    if cluster.launcher == "srun":
        words.append(f"--ntasks-per-node={tasks_per_node}")
        # Zero is all memory of a node; the executor drops a zero and refuses the option unquoted.
        words += ["--mem''=0"] if cluster.mem_mb is None else []
    if cluster.gpus_per_node:
        words.append(f"--gpus-per-node={cluster.gpus_per_node}")
    return [*words, *([exclude_flag] if exclude_flag else [])]
