"""Command lines that start the ranks: plain Python, torchrun, srun. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.training.container import container_words, inside
from perfproof.training.environment import inherited
from perfproof.training.workload import Command, interpreter

_PORTS = range(20000, 40000)


@dataclass(frozen=True)
class Start:
    """What the launcher runs, what the manifest shows of it, and the environment of both."""

    argv: list[str]
    shown: list[str]
    env: dict[str, str]
    given: dict[str, str]
    """The part of `env` that is the run's own."""


def plan(
    resolved: ResolvedRecipe,
    cluster: Cluster,
    command: Command,
    run_dir: Path,
    *,
    prefix: Sequence[str] = (),
    base_env: Mapping[str, str],
    nodes: Sequence[str],
) -> Start:
    """How to start all ranks. `prefix` comes before each rank's process (a container, numactl)."""
    given = resolved.env | dict(command.env)
    if cluster.launcher == "srun":
        words = srun_words(resolved, cluster)
        given |= rendezvous(base_env, nodes)
    elif resolved.ranks > 1:
        words = torchrun_words(resolved.ranks)
    else:
        words = []
        given |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    real = [interpreter(), "-m", "torch.distributed.run", *words[1:]]
    launcher = real if words[:1] == ["torchrun"] else words
    box = container_words(cluster, run_dir)
    return Start(
        argv=[*launcher, *prefix, *wrapped(command, run_dir, resolved.ranks, cluster, box)],
        shown=[*words, *prefix, *box[:1], *command.shown],
        env=_without_ranks(inherited(base_env)) | given,
        given=given,
    )


def wrapped(
    command: Command, run_dir: Path, ranks: int, cluster: Cluster, container: Sequence[str] = ()
) -> list[str]:
    """`command` inside the wrapper that gives each rank its log and its environment.

    The wrapper is outside the container, so that a container that does not start leaves a log.
    """
    words = [interpreter(), "-m", "perfproof.training.wrap", "--run-dir", str(run_dir.resolve())]
    words += ["--ranks", str(ranks)]
    if cluster.launcher == "local":
        # Not under srun, whose daemons see to it: which of their threads is the parent is unknown.
        words.append("--die-with-parent")
    for name, template in sorted(command.rank_env.items()):
        words += ["--rank-env", f"{name}={template}"]
    if command.cwd:
        words += ["--cwd", str(command.cwd)]
    return [*words, "--exec", *container, *inside(command.argv, cluster, interpreter())]


def torchrun_words(ranks: int) -> list[str]:
    """torchrun for several ranks on this machine, on a port of its own choosing."""
    return ["torchrun", "--standalone", f"--nproc-per-node={ranks}", "--no-python"]


def srun_words(resolved: ResolvedRecipe, cluster: Cluster) -> list[str]:
    """srun for the ranks of an allocation, with nothing left to the environment.

    GPUs are asked for by node: RCCL then sees them all. Blocks put rank 0 on the first node, where
    the ranks meet.
    """
    per_node = resolved.ranks // resolved.nodes
    words = [
        "srun",
        f"--nodes={resolved.nodes}",
        f"--ntasks={resolved.ranks}",
        f"--ntasks-per-node={per_node}",
        "--distribution=block",
        "--kill-on-bad-exit=1",
    ]
    if cluster.gpus_per_node:
        words.append(f"--gpus-per-node={cluster.gpus_per_node}")
    if cluster.cpus_per_node:
        words.append(f"--cpus-per-task={max(1, cluster.cpus_per_node // per_node)}")
    if cluster.mpi:
        words.append(f"--mpi={cluster.mpi}")
    return words


def rendezvous(env: Mapping[str, str], nodes: Sequence[str]) -> dict[str, str]:
    """Where ranks meet: the first node, a port that follows from the job id."""
    job = env.get("SLURM_JOB_ID", "0")
    offset = int(job) % len(_PORTS) if job.isdecimal() else 0
    return {"MASTER_ADDR": nodes[0], "MASTER_PORT": str(_PORTS[offset])}


def _without_ranks(env: Mapping[str, str]) -> dict[str, str]:
    """Rank variables left by an outer launcher would hide those of srun or torchrun."""
    return {k: v for k, v in env.items() if k not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
