"""torch.compile of repeated parts of a model: one compiled graph serves all of them."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from perfproof.schema.config import Training


def compile_parts(
    parts: Iterable[nn.Module], training: Training, *, dynamic: bool | None = None
) -> None:
    """Compile each of the `parts` in place where the recipe asks for it.

    `dynamic`: whether sizes differ from batch to batch; None lets PyTorch find out.
    """
    if not training.compile:
        return
    mode = training.compile_mode if training.compile_backend == "inductor" else None
    for part in parts:
        part.compile(backend=training.compile_backend, mode=mode, dynamic=dynamic)
