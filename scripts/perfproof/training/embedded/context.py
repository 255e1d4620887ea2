"""What every part of an embedded trainer knows about its run, and what all ranks do together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from perfproof.schema.config import Recipe, ResolvedRecipe, Training
from perfproof.training.identity import Identity

_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
}


@dataclass(frozen=True)
class Context:
    """One rank's view of the run."""

    resolved: ResolvedRecipe
    run_dir: Path
    who: Identity
    device: torch.device
    hooked: Mapping[str, str] = field(default_factory=dict)
    """What the recipe's rank hooks say of this process."""

    @property
    def recipe(self) -> Recipe:
        """The recipe after the trial's levers."""
        return self.resolved.recipe

    @property
    def training(self) -> Training:
        """The recipe's training section."""
        return self.resolved.recipe.training

    @property
    def dtype(self) -> torch.dtype:
        """Type of parameters and activations."""
        return _DTYPES[self.training.dtype]

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, the one that reports."""
        return self.who.rank == 0

    @property
    def on_gpu(self) -> bool:
        """Whether this rank computes on a GPU."""
        return self.device.type == "cuda"

    def synchronize(self) -> None:
        """Wait for the device, so that a clock read next covers its work."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def replicated(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over all ranks; itself on a single rank."""
        if self.who.world_size == 1:
            return model
        return DistributedDataParallel(model, device_ids=[self.device] if self.on_gpu else None)


@contextlib.contextmanager
def process_group(who: Identity, device: torch.device) -> Iterator[None]:
    """Join the ranks: NCCL (RCCL) on GPUs, gloo on CPUs; nothing for a single rank."""
    if who.world_size == 1:
        yield
        return
    if device.type == "cuda":
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")
    yield
    # Not after an error: ranks that still train would be waited for, and the launcher ends them.
    dist.destroy_process_group()


def mean_over_ranks(value: torch.Tensor) -> torch.Tensor:
    """The mean of a tensor over all ranks."""
    if not dist.is_initialized():
        return value
    total = value.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def save_checkpoint(context: Context, model: nn.Module, epoch: int) -> None:
    """Write the parameters once; all ranks wait, as they do in the real trainers."""
    if context.is_first:
        folder = context.run_dir / "checkpoints"
        folder.mkdir(exist_ok=True)
        torch.save(model.state_dict(), folder / f"epoch_{epoch}.pt")
    if dist.is_initialized():
        dist.barrier()
