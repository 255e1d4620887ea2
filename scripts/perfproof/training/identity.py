"""Which rank a process is. Standard library only: it runs before anything else is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfproof.core.errors import InputError

# A torchrun rank inside a SLURM job sees both sets; the first one is about the ranks.
_NAMES = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
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
        """The variables that PyTorch reads."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.world_size),
        }


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
    raise InputError("environment", "no rank", "RANK (torchrun) or SLURM_PROCID (srun)")
