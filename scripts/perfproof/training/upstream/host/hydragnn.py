"""Hooks of HydraGNN: its training epoch gets a counted loader; its losses are listened to."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from .facts import Realised
from .plan import Plan
from .steps import CountedLoader, Recorder

_LOSSES = ("loss", "energy_force_loss")


def install(plan: Plan, recorder: Recorder, realised: Realised) -> None:
    """Wrap `train` of `hydragnn.train.train_validate_test`, one call of which is one epoch."""
    # The package re-exports a function under the module's name, so attribute access misses it.
    module: Any = importlib.import_module("hydragnn.train.train_validate_test")
    # Without an MPI launcher each rank is a world of its own for HydraGNN's MPI calls.
    realised.effects["mpi_world_size"] = str(module.MPI.COMM_WORLD.Get_size())
    original = module.train
    signature = inspect.signature(original)

    @functools.wraps(original)
    def train(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        model, loader = given["model"], given["loader"]
        realised.loader(loader)
        realised.model(model, [model.module])
        profiled = recorder.epochs == plan.profiled_epoch
        given["loader"] = CountedLoader(loader, recorder, lambda b: int(b.num_graphs), profiled)
        with _listening(model, recorder):
            result = original(*bound.args, **bound.kwargs)
        recorder.epoch_ends()
        return result

    module.train = train
    importlib.import_module("hydragnn.train").__dict__["train"] = train


@contextlib.contextmanager
def _listening(model: Any, recorder: Recorder) -> Iterator[None]:
    """Tell the recorder the total loss of each step while an epoch trains."""
    inner = model.module
    for name in _LOSSES:
        original = getattr(inner, name, None)
        if original is not None:
            inner.__dict__[name] = _told(original, recorder)
    try:
        yield
    finally:
        for name in _LOSSES:
            inner.__dict__.pop(name, None)


def _told(original: Any, recorder: Recorder) -> Any:
    @functools.wraps(original)
    def told(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        recorder.lost(result[0].detach())
        return result

    return told
