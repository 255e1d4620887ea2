from __future__ import annotations

import pytest

from perfproof.core.errors import InputError
from perfproof.schema.config import ResolvedRecipe
from perfproof.training.identity import Identity, identity
from perfproof.training.rank import check_world

SLURM = {"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8"}
TORCHRUN = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}


def test_torchrun_is_believed_before_slurm() -> None:
    assert identity(SLURM) == Identity(5, 1, 8)
    assert identity(SLURM | TORCHRUN) == Identity(1, 1, 2)


def test_environment_reads_back_as_the_same_rank() -> None:
    who = Identity(3, 1, 4)
    assert identity(who.environment()) == who
    assert who.fill("{rank}/{world_size} local {local_rank}") == "3/4 local 1"


@pytest.mark.parametrize("env", [{}, {"RANK": "0"}, TORCHRUN | {"WORLD_SIZE": "two"}])
def test_incomplete_environments_are_refused(env: dict[str, str]) -> None:
    with pytest.raises(InputError, match="environment"):
        identity(env)


def test_a_rank_does_not_train_alone(resolved_pair: ResolvedRecipe) -> None:
    check_world(resolved_pair, Identity(0, 0, 2))
    with pytest.raises(InputError, match=r"1 rank\(s\) started; expected 2"):
        check_world(resolved_pair, Identity(0, 0, 1))
