"""The plan: what the launcher tells the host about a run. Plain JSON, no paths of this machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


class HostError(BaseException):
    """The run is not what was asked for. Not an `Exception`: trainers catch those and go on."""


@dataclass(frozen=True)
class Window:
    """Steps of the profiled epoch: passed over, warmed up, recorded."""

    wait: int
    warmup: int
    active: int
    record_shapes: bool
    with_stack: bool

    @property
    def steps(self) -> int:
        """Steps that the epoch must have for the trace to be whole."""
        return self.wait + self.warmup + self.active


@dataclass(frozen=True)
class Plan:
    """One run. An epoch is one pass over one training loader; the profiled one counts too."""

    trainer: str
    ranks: int
    dtype: str
    batch_size: int
    num_workers: int
    persistent_workers: bool
    batches_per_epoch: int
    epochs: int
    profiled_epoch: int | None
    window: Window | None
    save_checkpoints: bool
    sdpa_backend: str
    compile_mode: str | None
    preload: list[str]
    shims: list[str]
    env: list[str]
    versions: dict[str, str | bool | None] = field(default_factory=dict)
    hooks: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True, indent=2) + "\n"


def read_plan(path: Path) -> Plan:
    """The plan in `path`, as `to_json` wrote it."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["window"] is not None:
        data["window"] = Window(**data["window"])
    return Plan(**data)
