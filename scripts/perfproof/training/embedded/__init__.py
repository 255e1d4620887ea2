"""The embedded workload: small relatives of the real trainers, for any machine and any rank count.

They do the same kind of work (force training with a double backward; diffusion on attention over
variables), print the same log lines and obey the same recipe keys. Parallelism is replication
(DDP). Importing this package does not import PyTorch.
"""

from __future__ import annotations

from pathlib import Path

from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.training.workload import Command, interpreter


def command(resolved: ResolvedRecipe, cluster: Cluster, run_dir: Path) -> Command:  # noqa: ARG001
    """What each rank runs. The recipe is read from `run_dir`."""
    device = "gpu" if cluster.gpus_per_node else "cpu"
    words = ("-m", "perfproof.training.rank", "--device", device, "--run-dir")
    return Command(
        argv=(interpreter(), *words, str(run_dir.resolve())), shown=("python", *words, ".")
    )


def finish(resolved: ResolvedRecipe, cluster: Cluster, run_dir: Path) -> None:
    """Nothing: rank 0 writes its own report."""
