"""What ranks print: the lines of ORBIT-2's diffusion trainer, to the space, and step records."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfproof.training.embedded.context import Context
from perfproof.training.embedded.orbit2.settings import Architecture, Data
from perfproof.training.embedded.records import StepRecord

_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "K"))


def header(context: Context, model: nn.Module) -> None:
    """World, parallelism and sizes, before the first epoch."""
    who = context.who
    sizes = Architecture.model_validate(context.recipe.architecture)
    data = Data.model_validate(context.recipe.data)
    tokens = (data.height // sizes.patch) * (data.width // sizes.patch)
    print("world_size", who.world_size, "world_rank", who.rank, "local_rank", who.local_rank)
    if not context.is_first:
        return
    print(
        f"data_par_size {who.world_size} fsdp_size 1 simple_ddp_size {who.world_size} "
        "tensor_par_size 1 seq_par_size 1 division 1 overlap 0"
    )
    print(
        "img_size", (data.height, data.width), "in_channels", data.variables_in,
        "out_channels", data.variables_out, "num_patches", tokens,
    )  # fmt: skip
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"Total model parameters: {short_count(count)}")


def short_count(count: int) -> str:
    """`9.45M` for 9 450 000."""
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.2f}{unit}"
    return str(count)


def batch_lines(context: Context, epoch: int, batch: int, high: Tensor, loss: Tensor) -> None:
    """Realised batch and loss of a step, on every rank. Reading the loss waits for the device."""
    print("y.shape", high.shape)
    rank = context.who.rank
    print("epoch: ", epoch, "batch_idx", batch, "world_rank", rank, " loss ", loss)


def step_lines(context: Context, batch: int, rates: list[float], seconds: float) -> None:
    """Learning rate with reserved memory (GPU only), and the time of a step; rank 0."""
    if not context.is_first:
        return
    if context.on_gpu:
        reserved = torch.cuda.memory_reserved(context.device) / 1024**3
        print(
            f"rank 0 batch_idx {batch} get_lr  {rates} after optimizer step "
            f"torch.cuda.memory_reserved: {reserved:f}GB"
        )
    print(f"my rank 0. tic4-tic1 in {seconds:0.4f} seconds\n")


def step_record(context: Context, record: StepRecord) -> None:
    """The whole step with its wait for the batch, which tic4-tic1 leaves out; rank 0."""
    if context.is_first:
        print(record.line())


def epoch_start(context: Context, epoch: int) -> None:
    """`epoch  0`."""
    if context.is_first:
        print("epoch ", epoch)


def epoch_end(context: Context, epoch: int, total: Tensor) -> None:
    """The sum of rank 0's losses of an epoch."""
    if context.is_first:
        print("epoch: ", epoch, " epoch_loss ", total)
