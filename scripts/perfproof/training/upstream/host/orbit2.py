"""Hooks of ORBIT-2 and its relatives: every epoch asks the data module for a training loader."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from .facts import Realised
from .plan import Plan
from .steps import CountedLoader, Recorder


def install(plan: Plan, recorder: Recorder, realised: Realised) -> None:
    """Wrap the data module's `train_dataloader` and the function that builds the model."""
    _wrap_loader(plan, recorder, realised)
    package: Any = importlib.import_module("climate_learn")
    block: Any = importlib.import_module("climate_learn.models.hub.components.vit_blocks").Block
    build = package.load_downscaling_module

    @functools.wraps(build)
    def load_downscaling_module(*args: Any, **kwargs: Any) -> Any:
        built = build(*args, **kwargs)
        realised.model(built[0], [m for m in built[0].modules() if isinstance(m, block)])
        return built

    package.load_downscaling_module = load_downscaling_module


def _wrap_loader(plan: Plan, recorder: Recorder, realised: Realised) -> None:
    module: Any = importlib.import_module("climate_learn.data.itermodule").IterDataModule
    original = module.train_dataloader

    @functools.wraps(original)
    def train_dataloader(self: Any) -> CountedLoader:
        loader = original(self)
        realised.loader(loader)
        profiled = recorder.epochs == plan.profiled_epoch
        limit = plan.batches_per_epoch
        return CountedLoader(loader, recorder, lambda b: int(b[0].shape[0]), profiled, limit)

    module.train_dataloader = train_dataloader
