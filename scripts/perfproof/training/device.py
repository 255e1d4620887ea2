"""The accelerator of a rank, as PyTorch reports it."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from perfproof.core.errors import InputError
from perfproof.schema.base import Reason
from perfproof.schema.run import Device


def choose(kind: str, local_rank: int) -> torch.device:
    """The device of a rank; `kind` is `gpu` or `cpu`, as the cluster says."""
    if kind == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if local_rank >= count:
        raise InputError("node", f"{count} GPUs visible to PyTorch", f"{local_rank + 1} or more")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


def device_record(device: torch.device) -> Device:
    """The record of `device`; a CPU has no device memory."""
    if device.type == "cpu":
        return Device(
            kind="cpu",
            name=_cpu_name(),
            vendor="none",
            arch=platform.machine(),
            memory_bytes=None,
            count=0,
            reasons={"memory_bytes": Reason.NO_DEVICE},
        )
    found = torch.cuda.get_device_properties(device)
    is_amd = getattr(torch.version, "hip", None) is not None
    arch = found.gcnArchName.split(":")[0] if is_amd else f"sm_{found.major}{found.minor}"
    return Device(
        kind="gpu",
        name=found.name,
        vendor="amd" if is_amd else "nvidia",
        arch=arch,
        memory_bytes=found.total_memory,
        count=torch.cuda.device_count(),
    )


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
