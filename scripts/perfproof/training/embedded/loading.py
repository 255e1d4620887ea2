"""Data-loader settings that both models take from the recipe."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from perfproof.training.embedded.context import Context

T = TypeVar("T")


def loader_options(context: Context) -> dict[str, Any]:
    """Arguments of `torch.utils.data.DataLoader` that the recipe decides."""
    training = context.training
    return {
        "batch_size": training.batch_size,
        "num_workers": training.num_workers,
        "persistent_workers": training.persistent_workers,
        "pin_memory": context.on_gpu,
    }


def endless(batches: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Batches without end: a new pass whenever one is over (a pass must not be empty)."""
    return itertools.chain.from_iterable(iter(batches, None))
