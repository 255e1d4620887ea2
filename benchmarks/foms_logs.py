"""Synthetic training logs for the benchmark of `perfproof.foms`, in the shapes of real ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

RANKS = 16
_EDM_STEPS = 500
_BAR_STEPS = 2000


def edm_log(megabytes: int) -> Iterator[bytes]:
    """ORBIT-2, 16 ranks merged: sizes and losses of all ranks, times and memory of rank 0."""
    yield _edm_header().encode()
    random_ = random.Random(0)
    epoch = "".join(_edm_step(random_, step) for step in range(_EDM_STEPS)).encode()
    for number in range(max(2, megabytes * 10**6 // len(epoch))):
        yield epoch.replace(b"epoch:  0 ", b"epoch:  %d " % number)


def _edm_header() -> str:
    """Layout, and parameters as every rank prints them."""
    layout = f"fsdp_size {RANKS} simple_ddp_size 1 tensor_par_size 1 seq_par_size 1"
    parameters = (f"blocks.{n}.attn.qkv.weight torch.Size([3072, 1024])\n" for n in range(200))
    return f"data_par_size {RANKS} {layout}\n" + "".join(parameters) * RANKS


def _edm_step(random_: random.Random, step: int) -> str:
    files = [f"/data/low/train/1979_{random_.randrange(60)}.npz" for _ in range(8)]
    lines = [f"{random_.randrange(RANKS)} NpyReader: {file}\n" for file in files]
    lines += ["y.shape torch.Size([4096, 3, 108, 216])\n"] * RANKS
    lines += [
        f"epoch:  0 batch_idx {step} world_rank {rank}  loss  tensor({random_.random():.4f}, "
        f"device='cuda:{rank % 8}', grad_fn=<MeanBackward0>)\n"
        for rank in random_.sample(range(RANKS), RANKS)
    ]
    return "".join(lines) + (
        f"rank 0 batch_idx {step} get_lr  [1e-07] after optimizer step "
        "torch.cuda.memory_reserved: 236.100000GB\n"
        f"my rank 0. tic4-tic1 in {0.2 + random_.random() / 100:.4f} seconds\n\n"
    )


def hydragnn_log(megabytes: int) -> Iterator[bytes]:
    """HydraGNN, rank 0: a bar update and a memory line a step, an epoch line after the bar."""
    yield b"[precision-diagnostic] requested=fp64 model_param_dtype=torch.float64\n"
    bars = "".join(_bar(step) for step in range(1, _BAR_STEPS + 1))
    closing = f"\rTrain: 100%|{'█' * 10}| {_BAR_STEPS}/{_BAR_STEPS} [03:20<00:00, 10.00it/s]\n"
    losses = "0: Epoch: 00, Train Loss: 4.9, Val Loss: 4.9, Test Loss: 4.9\n"
    start = f"\rTrain:   0%|          | 0/{_BAR_STEPS} [00:00<?, ?it/s]"
    epoch = (start + bars + closing + losses).encode()
    for number in range(max(2, megabytes * 10**6 // len(epoch))):
        yield epoch.replace(b"Epoch: 00,", b"Epoch: %02d," % number)


def _bar(step: int) -> str:
    drawn = ("█" * (10 * step // _BAR_STEPS)).ljust(10)
    at = f"{step}/{_BAR_STEPS} [{step // 600:02d}:{step // 10 % 60:02d}<00:01, "
    memory = "0: Max memory allocated after optimizer step: 24.010000384 GB 25.300000768 GB\n"
    return f"\rTrain: {100 * step // _BAR_STEPS:3d}%|{drawn}| {at}10.{step % 100:02d}it/s]{memory}"


LOGS: dict[str, Callable[[int], Iterator[bytes]]] = {
    "orbit2_edm": edm_log,
    "hydragnn": hydragnn_log,
}
