"""Versions of the software of a run. What cannot be had is null with a reason."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import torch

from perfproof.schema.base import Reason
from perfproof.schema.run import Versions

_AMDGPU_VERSION = Path("/sys/module/amdgpu/version")


def versions(trainer_root: Path | None = None) -> Versions:
    """Of this process, this repository and, for a real trainer, its clone."""
    found: dict[str, str | bool | None] = {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "rocm": getattr(torch.version, "hip", None),
        "driver": driver_version(),
    }
    found["perfproof_commit"], found["perfproof_dirty"] = git_state(Path(__file__).parent)
    found["trainer_commit"], found["trainer_dirty"] = (
        git_state(trainer_root) if trainer_root else (None, None)
    )
    reasons = {name: _reason(name, trainer_root) for name, value in found.items() if value is None}
    return Versions.model_validate(
        {"python": platform.python_version(), "reasons": reasons} | found
    )


def _reason(name: str, trainer_root: Path | None) -> Reason:
    if name in ("cuda", "rocm") or (name.startswith("trainer_") and trainer_root is None):
        return Reason.NOT_APPLICABLE
    if name == "driver" and not torch.cuda.is_available():
        return Reason.NO_DEVICE
    return Reason.NOT_RECORDED


def git_state(directory: Path) -> tuple[str | None, bool | None]:
    """Commit and whether anything differs from it; (None, None) outside a git work tree."""
    commit = _output(["git", "-C", str(directory), "rev-parse", "HEAD"])
    if commit is None:
        return None, None
    changes = _output(["git", "-C", str(directory), "status", "--porcelain"])
    return commit, None if changes is None else bool(changes)


def driver_version() -> str | None:
    """Version of the kernel driver of the GPUs: NVIDIA's, else AMD's, else None."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    lines = (_output(query) or "").splitlines()
    if lines:
        return lines[0].strip()
    if _AMDGPU_VERSION.is_file():
        return _AMDGPU_VERSION.read_text(encoding="ascii").strip()
    return None


def _output(command: list[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
