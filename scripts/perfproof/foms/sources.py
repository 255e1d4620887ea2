"""What is known of a run outside its log: manifest, trainer configuration, launch record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfproof.core.errors import InputError
from perfproof.core.files import read_json, read_record, read_yaml
from perfproof.schema.base import Problem
from perfproof.schema.run import Inventory, Manifest, Role

DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "bf16": "bfloat16",
    "float64": "float64",
    "float32": "float32",
    "bfloat16": "bfloat16",
}


@dataclass
class Sources:
    """Values by source; None where the source is missing or does not say."""

    manifest: Manifest | None = None
    meta_ranks: int | None = None
    meta_model: str | None = None
    batch_size: int | None = None
    dtype: str | None = None
    epochs: int | None = None
    config_ranks: int | None = None
    config_data_ranks: int | None = None
    profiled_epoch: int | None = None
    problems: list[Problem] = field(default_factory=list)


def read_sources(inventory: Inventory) -> Sources:
    """Read manifest, configuration and launch record; what cannot be read is a problem."""
    sources, root = Sources(), Path(inventory.root)
    for where, path in _files(inventory, Role.MANIFEST, root):
        try:
            sources.manifest = read_record(path, Manifest)
        except InputError as fault:
            sources.problems.append(_problem(where, fault))
    for role, take in ((Role.CONFIG, _take_config), (Role.META, _take_meta)):
        for where, path in _files(inventory, role, root):
            try:
                take(sources, read_json(path) if path.suffix == ".json" else read_yaml(path))
            except InputError as fault:
                sources.problems.append(_problem(where, fault))
    return sources


def _files(inventory: Inventory, role: Role, root: Path) -> Iterator[tuple[str, Path]]:
    for artifact in inventory.of(role):
        if role is Role.MANIFEST or Path(artifact.path).suffix in (".json", ".yaml", ".yml"):
            yield artifact.path, root / artifact.path


def _problem(where: str, fault: InputError) -> Problem:
    key = f"{fault.key}: " if fault.key else ""
    return Problem(where=where, what=f"{key}{fault.found}; expected {fault.expected}")


def _take_config(sources: Sources, config: Any) -> None:
    """HydraGNN's JSON or ORBIT-2's YAML; other files say nothing."""
    training = _at(config, "NeuralNetwork", "Training")
    trainer, parallel = _at(config, "trainer"), _at(config, "parallelism")
    if training:
        sources.batch_size = _count(training.get("batch_size"))
        sources.dtype = DTYPES.get(str(training.get("precision")))
        sources.epochs = _count(training.get("num_epoch"))
        profile = _at(config, "NeuralNetwork", "Profile")
        if profile.get("enable") in (1, True):
            target = profile.get("target_epoch")
            sources.profiled_epoch = target if isinstance(target, int) else None
    if trainer:
        sources.batch_size = _count(trainer.get("batch_size"))
        sources.dtype = DTYPES.get(str(trainer.get("data_type")))
    sizes = [_count(parallel.get(key)) for key in ("fsdp", "simple_ddp")]
    if sizes[0] and sizes[1]:
        model = [_count(parallel.get(key)) or 1 for key in ("tensor_par", "seq_par")]
        sources.config_data_ranks = sizes[0] * sizes[1]
        sources.config_ranks = sources.config_data_ranks * model[0] * model[1]


def _take_meta(sources: Sources, meta: Any) -> None:
    if isinstance(meta, dict):
        sources.meta_ranks = sources.meta_ranks or _count(meta.get("ranks", meta.get("world_size")))
        model = meta.get("model")
        sources.meta_model = model if isinstance(model, str) else sources.meta_model


def _at(data: Any, *keys: str) -> dict[str, Any]:
    """The mapping at `keys`, empty where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _count(value: Any) -> int | None:
    """A positive integer, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
