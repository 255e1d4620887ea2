from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.core.config import load_cluster
from perfproof.core.resources import request
from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.training.resolve import resolve


@pytest.fixture
def sixteen(root: Path) -> ResolvedRecipe:
    """A run of 2 x 8 ranks."""
    return resolve(
        root, model="hydragnn", trial="baseline", cluster="mi355x", nodes=2, workload="embedded"
    )


def test_a_run_of_two_nodes_with_eight_gpus(root: Path, sixteen: ResolvedRecipe) -> None:
    site = load_cluster(root, "mi355x").model_copy(
        update={"partition": "gpu", "account": "proj", "constraint": "mi355x", "mem_mb": 900_000}
    )
    asked = request(site, sixteen, "--exclude=a1,a2")
    assert (asked.mpi, asked.nodes, asked.tasks, asked.cpus_per_task) == ("srun", 2, 16, 7)
    assert (asked.mem_mb, asked.runtime) == (900_000, 60)
    assert (asked.slurm_partition, asked.slurm_account) == ("gpu", "proj")
    assert asked.constraint == "mi355x"
    assert asked.slurm_extra == "--ntasks-per-node=8 --gpus-per-node=8 --exclude=a1,a2"


def test_what_the_cluster_does_not_say_is_not_asked(root: Path, sixteen: ResolvedRecipe) -> None:
    asked = request(load_cluster(root, "mi355x"), sixteen)
    assert (asked.slurm_partition, asked.slurm_account, asked.constraint) == (None, None, None)
    assert asked.mem_mb == 0
    assert asked.slurm_extra == "--ntasks-per-node=8 --mem''=0 --gpus-per-node=8"


def test_a_single_rank_gets_the_room_of_two(sixteen: ResolvedRecipe) -> None:
    """The executor refuses `mpi` with one task."""
    site = Cluster(cluster="far", description="", launcher="srun", cpus_per_node=8, mem_mb=1000)
    asked = request(site, sixteen.model_copy(update={"nodes": 1, "ranks": 1}))
    assert (asked.mpi, asked.tasks, asked.cpus_per_task) == ("srun", 2, 4)
    assert asked.slurm_extra == "--ntasks-per-node=2"


def test_a_cluster_without_srun_is_one_job_on_one_node(sixteen: ResolvedRecipe) -> None:
    site = Cluster(cluster="here", description="", gpus_per_node=2)
    asked = request(site, sixteen.model_copy(update={"nodes": 1, "ranks": 2}), "--exclude=x")
    assert (asked.mpi, asked.nodes, asked.tasks, asked.cpus_per_task) == (None, 1, 1, None)
    assert asked.slurm_extra == "--gpus-per-node=2 --exclude=x"
