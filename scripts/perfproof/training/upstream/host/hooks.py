"""Hooks that every trainer gets: guards, checkpoint gate, attention backends, declared shims."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from .plan import HostError
from .ranks import Rank
from .steps import Recorder

_BACKENDS = {
    "flash": "flash_sdp",
    "efficient": "mem_efficient_sdp",
    "cudnn": "cudnn_sdp",
    "math": "math_sdp",
}


class WorldGuard:
    """Makes the trainer's ranks meet where the launcher says, and holds them to its count."""

    def __init__(self, rank: Rank, meeting: dict[str, str]) -> None:
        import torch.distributed as dist

        self._rank, self._meeting, self._seen = rank, meeting, False
        self._init = dist.init_process_group
        _replace(dist, "init_process_group", self._guarded)

    def _guarded(self, *args: Any, **kwargs: Any) -> None:
        import torch.distributed as dist

        os.environ.update(self._meeting)
        self._init(*args, **kwargs)
        found, asked = (dist.get_rank(), dist.get_world_size()), (self._rank.rank, self._rank.world)
        if found != asked:
            raise HostError(
                f"the trainer takes itself for rank {found[0]} of {found[1]}, "
                f"the launcher made it rank {asked[0]} of {asked[1]}"
            )
        self._seen = True

    def check(self) -> None:
        """At the end: several ranks that never made a process group each trained alone."""
        if self._rank.world > 1 and not self._seen:
            raise HostError(f"{self._rank.world} ranks, but the trainer made no process group")


class CheckpointGate:
    """Drops what the trainer saves once training has begun, on all ranks alike.

    What is saved before that stays: ORBIT-2 hands initial weights from rank to rank by file.
    """

    def __init__(self, recorder: Recorder) -> None:
        import torch

        self.dropped = 0
        self._recorder, self._save = recorder, torch.save
        _replace(torch, "save", self._gated)

    def _gated(self, *args: Any, **kwargs: Any) -> None:
        if self._recorder.training:
            self.dropped += 1
        else:
            self._save(*args, **kwargs)


def select_sdpa(choice: str) -> str:
    """Let PyTorch pick only from `choice` (`flash`, `efficient+math`, …); returns what is on."""
    import torch

    cuda: Any = torch.backends.cuda
    wanted = _BACKENDS if choice == "default" else choice.split("+")
    for name, switch in _BACKENDS.items():
        if choice != "default":
            getattr(cuda, f"enable_{switch}")(name in wanted)
    return "+".join(n for n, s in sorted(_BACKENDS.items()) if getattr(cuda, f"{s}_enabled")())


def compile_modules(modules: list[Any], mode: str) -> str:
    """Compile `modules` in place; says what was compiled."""
    for module in modules:
        module.compile(mode=mode)
    kinds = sorted({type(module).__name__ for module in modules})
    return f"{mode}: {len(modules)} x {'/'.join(kinds)}"


def keep_workers() -> None:
    """Let the workers of every loader live as long as the loader."""
    import torch.utils.data

    def kept(args: Any, kwargs: Any) -> tuple[Any, Any]:
        return args, kwargs | {"persistent_workers": kwargs.get("num_workers", 0) > 0}

    _with_argument(torch.utils.data.DataLoader, "__init__", kept)


def script_names(shims: list[str]) -> dict[str, Any]:
    """Names put into the script's globals: those that ORBIT-2's bfloat16 path misspells."""
    if "bf16_names" not in shims:
        return {}
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    return {"shardedgradscaler": ShardedGradScaler, "true": True}


def emulate_cuda() -> None:
    """Let a trainer that names CUDA everywhere run on the CPU, over gloo."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel

    cpu = torch.device("cpu")
    # One function each: PyTorch's compiler refuses to meet the same one under two names.
    _replace(torch.cuda, "set_device", lambda *_: None)
    _replace(torch.cuda, "synchronize", lambda **_: None)
    _replace(torch.cuda, "current_device", lambda: cpu)
    _replace(torch.cuda, "memory_reserved", lambda *_: 0)
    _with_argument(dist, "init_process_group", lambda a, k: (("gloo", *a[1:]), k))
    _with_argument(dist, "barrier", lambda a, k: (a, k | {"device_ids": None}))
    # Broadcasting initial weights needs GPUs; PyTorch's default seed gives all ranks the same ones.
    placed = {"device_id": cpu, "sync_module_states": False}
    _with_argument(FullyShardedDataParallel, "__init__", lambda a, k: (a, k | placed))


def _with_argument(owner: Any, name: str, change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def changed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = change(args, kwargs)
        return original(*args, **kwargs)

    _replace(owner, name, changed)


def _replace(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)
