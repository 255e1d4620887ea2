"""Command lines that start the ranks: plain Python, torchrun, srun. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.training.workload import Command, interpreter

_PORTS = range(20000, 40000)


@dataclass(frozen=True)
class Start:
    """What the launcher runs, what the manifest shows of it, and the environment of both."""

    argv: list[str]
    shown: list[str]
    env: dict[str, str]


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
    env = _without_thread_counts(base_env) | resolved.env | dict(command.env)
    if cluster.launcher == "srun":
        words = srun_words(resolved, cluster)
        env = _without_torchrun(env) | rendezvous(base_env, nodes)
    elif resolved.ranks > 1:
        words = torchrun_words(resolved.ranks)
    else:
        words = []
        env |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    real = [interpreter(), "-m", "torch.distributed.run", *words[1:]]
    launcher = real if words[:1] == ["torchrun"] else words
    return Start(
        argv=[*launcher, *prefix, *wrapped(command, run_dir)],
        shown=[*words, *prefix, *command.shown],
        env=env,
    )


# Snakemake exports these with a rule's `threads`: the number of cores it reserved, not what the
# recipe asks of a rank. MKL's would win over the recipe's OMP_NUM_THREADS.
_THREAD_COUNTS = frozenset(
    f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "GOTO", "OPENBLAS", "NUMEXPR")
)


def _without_thread_counts(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in _THREAD_COUNTS}


def wrapped(command: Command, run_dir: Path) -> list[str]:
    """`command` inside the wrapper that gives each rank its log and its environment."""
    words = [interpreter(), "-m", "perfproof.training.wrap", "--run-dir", str(run_dir.resolve())]
    for name, template in sorted(command.rank_env.items()):
        words += ["--rank-env", f"{name}={template}"]
    if command.cwd:
        words += ["--cwd", str(command.cwd)]
    return [*words, "--exec", *command.argv]


def torchrun_words(ranks: int) -> list[str]:
    """torchrun for several ranks on this machine, on a port of its own choosing."""
    return ["torchrun", "--standalone", f"--nproc-per-node={ranks}", "--no-python"]


def srun_words(resolved: ResolvedRecipe, cluster: Cluster) -> list[str]:
    """srun for the ranks of an allocation. GPUs are asked for by node: RCCL then sees them all."""
    per_node = resolved.ranks // resolved.nodes
    words = [
        "srun",
        f"--nodes={resolved.nodes}",
        f"--ntasks={resolved.ranks}",
        f"--ntasks-per-node={per_node}",
        "--kill-on-bad-exit=1",
    ]
    if cluster.gpus_per_node:
        words.append(f"--gpus-per-node={cluster.gpus_per_node}")
    if cluster.cpus_per_node:
        words.append(f"--cpus-per-task={max(1, cluster.cpus_per_node // per_node)}")
    return words


def rendezvous(env: Mapping[str, str], nodes: Sequence[str]) -> dict[str, str]:
    """Where ranks meet: the first node, a port that follows from the job id."""
    job = env.get("SLURM_JOB_ID", "0")
    offset = int(job) % len(_PORTS) if job.isdecimal() else 0
    return {"MASTER_ADDR": nodes[0], "MASTER_PORT": str(_PORTS[offset])}


def _without_torchrun(env: Mapping[str, str]) -> dict[str, str]:
    """Rank variables left by an outer launcher would hide those of srun."""
    return {k: v for k, v in env.items() if k not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
