from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perfproof.core.errors import InputError
from perfproof.schema.config import ResolvedRecipe
from perfproof.training.identity import Identity, identity
from perfproof.training.rank import check_world

SLURM = {"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8"}
TORCHRUN = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}


MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_SIZE": "3",
}


def test_torchrun_is_believed_before_slurm() -> None:
    assert identity(SLURM) == Identity(5, 1, 8)
    assert identity(SLURM | TORCHRUN) == Identity(1, 1, 2)
    assert identity(MPIRUN) == Identity(2, 0, 3)
    assert identity(MPIRUN | SLURM) == Identity(5, 1, 8)
    assert identity({"PMI_RANK": "1", "MPI_LOCALRANKID": "1", "PMI_SIZE": "2"}).rank == 1


def test_environment_reads_back_as_the_same_rank() -> None:
    who = Identity(3, 1, 4)
    env = who.environment()
    assert identity(env) == who
    assert identity({n: v for n, v in env.items() if n.startswith("OMPI")}) == who
    assert who.fill("{rank}/{world_size} local {local_rank}") == "3/4 local 1"


@pytest.mark.parametrize("env", [{}, {"RANK": "0"}, TORCHRUN | {"WORLD_SIZE": "two"}])
def test_incomplete_environments_are_refused(env: dict[str, str]) -> None:
    with pytest.raises(InputError, match="environment"):
        identity(env)


def test_a_rank_does_not_train_alone(resolved_pair: ResolvedRecipe) -> None:
    check_world(resolved_pair, Identity(0, 0, 2))
    with pytest.raises(InputError, match=r"1 rank\(s\) started; expected 2"):
        check_world(resolved_pair, Identity(0, 0, 1))


def test_a_thread_that_pins_memory_does_not_change_the_ranks_threads() -> None:
    code = """
import sys, threading, torch
from perfproof.training.rank import settle_threads
if sys.argv[1] == "settled":
    settle_threads()
pinning = threading.Thread(target=torch.set_num_threads, args=(1,))
pinning.start()
pinning.join()
print(torch.get_num_threads())
"""
    counts = {
        settled: subprocess.run(
            [sys.executable, "-c", code, settled],
            env=os.environ | {"OMP_NUM_THREADS": "2"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for settled in ("settled", "not settled")
    }
    assert counts == {"settled": "2", "not settled": "1"}
