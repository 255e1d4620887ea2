from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.training.resolve import resolve
from perfproof.training.start import Start, plan, rendezvous, srun_words
from perfproof.training.workload import Command

COMMAND = Command(
    argv=("/opt/python", "/clone/train.py", "--config", "/run/c.json"),
    shown=("python", "train.py", "--config", "c.json"),
    env={"FROM_COMMAND": "1"},
    rank_env={"MPI_RANK": "{rank}", "MPI_SIZE": "{world_size}"},
    cwd=Path("/clone"),
)


def start(resolved: ResolvedRecipe, cluster: Cluster, **env: str) -> Start:
    nodes = ["node1", "node2"]
    return plan(
        resolved, cluster, COMMAND, Path("/run"), prefix=["nice"], base_env=env, nodes=nodes
    )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(cluster="here", description="", launcher="local")


@pytest.fixture
def slurm() -> Cluster:
    return Cluster(
        cluster="far", description="", launcher="srun", gpus_per_node=8, cpus_per_node=56
    )


def test_one_rank_is_plain_python(tiny_root: Path, cluster: Cluster) -> None:
    single = resolve(tiny_root, model="hydragnn", trial="baseline", cluster="here", nodes=1)
    found = start(single, cluster, SLURM_PROCID="3", SLURM_NTASKS="4", SLURM_LOCALID="3")
    assert found.argv[:4] == ["nice", sys.executable, "-m", "perfproof.training.wrap"]
    assert found.argv[-5:] == ["--exec", *COMMAND.argv]
    assert found.shown == ["nice", *COMMAND.shown]
    assert {"RANK", "LOCAL_RANK", "WORLD_SIZE", "FROM_COMMAND"} <= found.env.keys()
    assert found.env["WORLD_SIZE"] == "1"
    assert "--die-with-parent" in found.argv


def test_several_ranks_are_torchrun(resolved_pair: ResolvedRecipe, cluster: Cluster) -> None:
    found = start(resolved_pair, cluster)
    assert found.argv[:3] == [sys.executable, "-m", "torch.distributed.run"]
    assert found.argv[3:7] == ["--standalone", "--nproc-per-node=2", "--no-python", "nice"]
    assert found.shown[0] == "torchrun"
    assert found.shown[-4:] == list(COMMAND.shown)
    assert "RANK" not in found.env


def test_each_rank_gets_its_environment_and_directory(
    resolved_pair: ResolvedRecipe, cluster: Cluster
) -> None:
    argv = start(resolved_pair, cluster).argv
    assert argv[argv.index("--cwd") + 1] == "/clone"
    assert [argv[i + 1] for i, word in enumerate(argv) if word == "--rank-env"] == [
        "MPI_RANK={rank}",
        "MPI_SIZE={world_size}",
    ]


def test_srun_spreads_ranks_and_gives_each_its_cpus(root: Path, slurm: Cluster) -> None:
    resolved = resolve(root, model="orbit2", trial="baseline", cluster="mi355x", nodes=2)
    assert srun_words(resolved, slurm) == [
        "srun",
        "--nodes=2",
        "--ntasks=16",
        "--ntasks-per-node=8",
        "--distribution=block",
        "--kill-on-bad-exit=1",
        "--gpus-per-node=8",
        "--cpus-per-task=7",
    ]
    found = start(resolved, slurm, SLURM_JOB_ID="41", RANK="9", OTHER="kept")
    assert found.argv[8] == "nice"
    assert "--die-with-parent" not in found.argv
    assert found.argv[found.argv.index("--ranks") + 1] == "16"
    assert found.env["MASTER_ADDR"] == "node1"
    assert found.env["OTHER"] == "kept"
    assert "RANK" not in found.env
    with_mpi = slurm.model_copy(update={"mpi": "pmix"})
    assert srun_words(resolved, with_mpi)[-1] == "--mpi=pmix"


def test_a_single_rank_is_started_by_srun_too(root: Path, slurm: Cluster) -> None:
    """In a step of its own: at a memory limit the kernel takes the rank and not the launcher."""
    recipe = resolve(root, model="orbit2", trial="baseline", cluster="mi355x", nodes=1)
    words = srun_words(recipe.model_copy(update={"ranks": 1}), slurm)
    assert words[:4] == ["srun", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1"]


def test_rendezvous_ports_differ_by_job_and_stay_in_range() -> None:
    ports = {int(rendezvous({"SLURM_JOB_ID": str(job)}, ["n"])["MASTER_PORT"]) for job in (1, 2)}
    assert len(ports) == 2
    assert all(20000 <= port < 40000 for port in ports)
    assert rendezvous({}, ["n"]) == {"MASTER_ADDR": "n", "MASTER_PORT": "20000"}


def test_only_the_recipe_sets_levers(tiny_root: Path, cluster: Cluster) -> None:
    """Snakemake exports its `threads` to every job: 128 of them, or 2 where the recipe says 1."""
    single = resolve(tiny_root, model="hydragnn", trial="baseline", cluster="here", nodes=1)
    asked = single.model_copy(update={"env": {"OMP_NUM_THREADS": "1"}})
    shell = {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "NCCL_ALGO": "Ring", "OTHER": "kept"}
    found = start(asked, cluster, **shell)
    assert found.env["OMP_NUM_THREADS"] == "1"
    assert not {"MKL_NUM_THREADS", "NCCL_ALGO"} & found.env.keys()
    assert found.env["OTHER"] == "kept"
    assert "OTHER" not in found.given
