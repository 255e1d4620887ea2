"""Rank 0's report: the recipe as realised by this process, read back from the live objects."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from perfproof.core.files import write_record
from perfproof.schema.run import RankReport
from perfproof.training.device import device_record
from perfproof.training.embedded.context import Context
from perfproof.training.manifest import RANK0_FILE
from perfproof.training.versions import versions


def write_report(
    context: Context,
    model: nn.Module,
    loader: DataLoader[Any],
    effects: dict[str, str],
    profiled_epoch: int | None = None,
) -> None:
    """Write `rank0.json` (rank 0 only). Called after the first step and again at the end."""
    if not context.is_first:
        return
    report = RankReport(
        world_size=context.who.world_size,
        device=device_record(context.device),
        versions=versions(),
        dtype=str(next(model.parameters()).dtype).removeprefix("torch."),
        num_workers=loader.num_workers,
        env={name: os.environ.get(name, "(unset)") for name in sorted(context.resolved.env)},
        effects=common_effects(model, loader) | effects | dict(context.hooked),
        profiled_epochs=[] if profiled_epoch is None else [profiled_epoch],
    )
    write_record(context.run_dir / RANK0_FILE, report)


def common_effects(model: nn.Module, loader: DataLoader[Any]) -> dict[str, str]:
    """Settings as the live objects hold them."""
    compiled = any(getattr(part, "_compiled_call_impl", None) for part in model.modules())
    recomputed = [part for part in model.modules() if getattr(part, "recomputes", False)]
    return {
        "batch_size": str(loader.batch_size),
        "persistent_workers": _switch(loader.persistent_workers),
        "compile": _switch(compiled),
        "activation_checkpointing": _switch(bool(recomputed)),
        "intra_op_threads": str(torch.get_num_threads()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "tunable_op": tunable_op(),
    }


def tunable_op() -> str:
    """Whether PyTorch picks GEMM kernels by its own table: `off`, `on`, or `tuning` it as well."""
    if not torch.cuda.is_available() or not torch.cuda.tunable.is_enabled():
        return "off"
    return "tuning" if torch.cuda.tunable.tuning_is_enabled() else "on"


def _switch(on: bool) -> str:
    return "on" if on else "off"
