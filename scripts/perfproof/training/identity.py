"""Which rank a process is. Standard library only: it runs before anything else is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfproof.core.errors import InputError

# A torchrun rank inside a SLURM job sees two sets; the first one is about the ranks.
_NAMES = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
)


@dataclass(frozen=True)
class Identity:
    """A rank among all ranks, and among those of its node."""

    rank: int
    local_rank: int
    world_size: int

    def fill(self, template: str) -> str:
        """`template` with `{rank}`, `{local_rank}` and `{world_size}` filled in."""
        return template.format(
            rank=self.rank, local_rank=self.local_rank, world_size=self.world_size
        )

    def environment(self) -> dict[str, str]:
        """The variables that trainers read: those of torchrun, and those of Open MPI's mpirun.

        A trainer that asks MPI itself (mpi4py) is told by srun's MPI plugin: the cluster's `mpi`.
        """
        values = (str(self.rank), str(self.local_rank), str(self.world_size))
        return dict(zip(_NAMES[0], values, strict=True)) | dict(zip(_NAMES[2], values, strict=True))


def identity(env: Mapping[str, str]) -> Identity:
    """The rank that the environment names, torchrun's variables before SLURM's."""
    for names in _NAMES:
        if names[0] not in env:
            continue
        values = [env.get(name, "") for name in names]
        if not all(value.isdecimal() for value in values):
            found = ", ".join(f"{n}={v}" for n, v in zip(names, values, strict=True))
            raise InputError("environment", found, "three numbers")
        return Identity(*(int(value) for value in values))
    known = ", ".join(names[0] for names in _NAMES)
    raise InputError("environment", "no rank", f"one of {known}")
