"""What rank 0 prints: HydraGNN's lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import torch
from tqdm import tqdm

_SHORT = {"float64": "fp64", "float32": "fp32", "bfloat16": "bf16"}


class Printer:
    """Prints on rank 0 and nowhere else. Logger lines go to standard error, others to output."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def bar(self, name: str, total: int) -> tqdm[NoReturn]:
        """A progress bar on standard error."""
        return tqdm(total=total, desc=name, file=sys.stderr, disable=not self.enabled)

    def log(self, text: str) -> None:
        """A line of HydraGNN's logger."""
        if self.enabled:
            tqdm.write(f"0: {text}", file=sys.stderr)

    def say(self, text: str) -> None:
        """A plain line, clear of any progress bar."""
        if self.enabled:
            tqdm.write(text, file=sys.stdout)

    def precision(self, requested: str, actual: torch.dtype) -> None:
        """The type asked for and the type the parameters have."""
        self.say(f"[precision-diagnostic] requested={_SHORT[requested]} model_param_dtype={actual}")

    def peak_memory(self, device: torch.device) -> None:
        """Peak allocated and reserved memory, GB of 10^9 bytes; nothing on a CPU."""
        if device.type == "cuda":
            allocated = torch.cuda.max_memory_allocated(device) / 1e9
            reserved = torch.cuda.max_memory_reserved(device) / 1e9
            self.log(f"Max memory allocated after optimizer step: {allocated} GB {reserved} GB")

    def epoch(self, epoch: int, losses: Sequence[Sequence[float]]) -> None:
        """Losses of an epoch: for train, validation and test the errors of each task."""
        train, validate, test = (sum(tasks) for tasks in losses)
        self.log(
            f"Epoch: {epoch:02d}, Train Loss: {train:.8f}, Val Loss: {validate:.8f}, "
            f"Test Loss: {test:.8f}"
        )
        for name, tasks in zip(("Train", "Val", "Test"), losses, strict=True):
            self.log(f"Tasks {name} Loss: {list(tasks)}")
