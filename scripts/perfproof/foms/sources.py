"""What is known of a run outside its log: manifest, trainer configuration, launch record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfproof.core.errors import InputError
from perfproof.core.files import read_json, read_record, read_yaml
from perfproof.foms.raw import changed, changed_problem, unlike
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Artifact, Inventory, Manifest, Role

DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "bf16": "bfloat16",
    "float64": "float64",
    "float32": "float32",
    "bfloat16": "bfloat16",
}

# Counts are below this; more is no count.
MOST = 10**9


@dataclass
class Sources:
    """Values by source; None where the source is missing, does not say or contradicts itself."""

    manifest: Manifest | None = None
    meta_ranks: int | None = None
    meta_model: str | None = None
    batch_size: int | None = None
    dtype: str | None = None
    epochs: int | None = None
    config_ranks: int | None = None
    config_data_ranks: int | None = None
    profiled_epoch: int | None = None
    contradicted: set[str] = field(default_factory=set)  # fields that two files state differently
    problems: list[Problem] = field(default_factory=list)

    @property
    def no_manifest(self) -> Reason:
        """Why a value of the manifest is not known."""
        contradicted = "manifest" in self.contradicted
        return Reason.DISAGREES if contradicted else Reason.NO_MANIFEST


def read_sources(inventory: Inventory) -> Sources:
    """Read manifest, configuration and launch record; what cannot be read is a problem."""
    sources = Sources()
    for role, take in ((Role.MANIFEST, _take_manifest), (Role.CONFIG, _config), (Role.META, _meta)):
        stated: dict[str, dict[str, Any]] = {}
        for artifact in _files(inventory, role):
            for name, value in _values(artifact, inventory, take, sources.problems).items():
                if value is not None:
                    stated.setdefault(name, {})[artifact.path] = value
        for name, values in stated.items():
            _settle(sources, name, values)
    return sources


def _settle(sources: Sources, name: str, values: dict[str, Any]) -> None:
    """Take the value on which all files agree; a second value means a second run."""
    (where, first), *others = values.items()
    if all(value == first for _, value in others):
        setattr(sources, name, first)
        return
    sources.contradicted.add(name)
    files = " and ".join(values)
    shown = "another run each"
    if name != "manifest":
        shown = ", ".join(f"{value} ({path})" for path, value in values.items())
    what = f"{name}: {shown}; expected one value, so one run"
    sources.problems.append(Problem(where=files if name == "manifest" else where, what=what))


_Take = Callable[[Path], dict[str, Any]]


def _values(
    artifact: Artifact, inventory: Inventory, take: _Take, problems: list[Problem]
) -> dict[str, Any]:
    """What a file states; a fault is one problem line."""
    try:
        if changed(artifact, inventory):
            problems.append(changed_problem(artifact))
            return {}
        return take(Path(inventory.root) / artifact.path)
    except InputError as fault:
        problems.append(_problem(artifact.path, fault))
    except OSError as fault:
        what = f"cannot be read ({fault.strerror}); expected a file of the run"
        problems.append(Problem(where=artifact.path, what=what))
    return {}


def _files(inventory: Inventory, role: Role) -> Iterator[Artifact]:
    for artifact in unlike(inventory.of(role)):
        if role is Role.MANIFEST or Path(artifact.path).suffix in (".json", ".yaml", ".yml"):
            yield artifact


def _problem(where: str, fault: InputError) -> Problem:
    key = f"{fault.key}: " if fault.key else ""
    return Problem(where=where, what=f"{key}{fault.found}; expected {fault.expected}")


def _take_manifest(path: Path) -> dict[str, Any]:
    return {"manifest": read_record(path, Manifest)}


def _config(path: Path) -> dict[str, Any]:
    """HydraGNN's JSON or ORBIT-2's YAML; other files say nothing."""
    config = read_json(path) if path.suffix == ".json" else read_yaml(path)
    training, trainer = _at(config, "NeuralNetwork", "Training"), _at(config, "trainer")
    values: dict[str, Any] = {}
    if training:
        values["batch_size"] = _count(training.get("batch_size"))
        values["dtype"] = DTYPES.get(str(training.get("precision")))
        values["epochs"] = _count(training.get("num_epoch"))
        profile = _at(config, "NeuralNetwork", "Profile")
        if profile.get("enable") in (1, True):
            target = profile.get("target_epoch")
            values["profiled_epoch"] = target if isinstance(target, int) else None
    if trainer:
        values["batch_size"] = _count(trainer.get("batch_size"))
        values["dtype"] = DTYPES.get(str(trainer.get("data_type")))
    return {**values, **_parallel(_at(config, "parallelism"))}


def _parallel(parallel: dict[str, Any]) -> dict[str, Any]:
    """Ranks of ORBIT-2's configuration."""
    fsdp, ddp = (_count(parallel.get(key)) for key in ("fsdp", "simple_ddp"))
    if not fsdp or not ddp:
        return {}
    tensor, sequence = (_count(parallel.get(key)) or 1 for key in ("tensor_par", "seq_par"))
    return {"config_data_ranks": fsdp * ddp, "config_ranks": fsdp * ddp * tensor * sequence}


def _meta(path: Path) -> dict[str, Any]:
    meta = read_json(path) if path.suffix == ".json" else read_yaml(path)
    if not isinstance(meta, dict):
        return {}
    model = meta.get("model")
    ranks = _count(meta.get("ranks", meta.get("world_size")))
    return {"meta_ranks": ranks, "meta_model": model if isinstance(model, str) else None}


def _at(data: Any, *keys: str) -> dict[str, Any]:
    """The mapping at `keys`, empty where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _count(value: Any) -> int | None:
    """A positive integer of a believable size, or None."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value < MOST else None
