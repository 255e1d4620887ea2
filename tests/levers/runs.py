"""Runs as the loop sees them, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfproof.levers.result import Seen
from perfproof.schema.base import Reason
from perfproof.schema.cluster import Cause, EndState, RunEnding
from perfproof.schema.config import Cluster
from perfproof.schema.foms import Foms
from perfproof.schema.levers import Lever, LeverCatalog
from perfproof.schema.run import Device, Manifest, State
from tests.foms import logs

SITE = Cluster(cluster="local", description="test", vendor="amd", gpus_per_node=8)
CPU = Device(
    kind="cpu",
    name="CPU",
    vendor="none",
    arch="x86_64",
    memory_bytes=None,
    count=0,
    reasons={"memory_bytes": Reason.NO_DEVICE},
)


def lever(name: str = "one", **fields: Any) -> Lever:
    return Lever(id=name, description=name, **fields)


def catalog(*levers: Lever, model: str = "orbit2") -> LeverCatalog:
    return LeverCatalog(model=model, levers=list(levers))


def manifest(
    *levers: str, state: State = State.COMPLETED, model: str = "orbit2", **rank0: Any
) -> Manifest:
    """A run of a trial with these levers on eight MI355X; `rank0` changes rank 0's report."""
    made = logs.manifest(**{"dtype": "bfloat16", **rank0})
    trial = "+".join(levers) or "baseline"
    recipe = made.resolved.recipe.model_copy(update={"model": model})
    changes = {"trial": trial, "levers": list(levers), "recipe": recipe}
    resolved = made.resolved.model_copy(update=changes)
    return made.model_copy(update={"resolved": resolved, "state": state})


def without_rank0(made: Manifest) -> Manifest:
    changes = {"rank0": None, "reasons": {**made.reasons, "rank0": Reason.RUN_INCOMPLETE}}
    return Manifest.model_validate({**dict(made), **changes})


def seen(
    made: Manifest,
    foms: Foms | None = None,
    kernels: frozenset[str] | None = None,
    **more: Any,
) -> Seen:
    return Seen(made, more.pop("ending", None), foms, kernels, more.pop("silent", False), **more)


def ending(state: EndState, cause: Cause | None = None) -> RunEnding:
    nulls = ["evidence", "exit_code", "scheduler_said", *([] if cause else ["cause"])]
    return RunEnding(
        state=state,
        cause=cause,
        evidence=None,
        blame="unknown",
        exit_code=None,
        rests_on="run",
        scheduler_said=None,
        explanation="test",
        reasons=dict.fromkeys(nulls, Reason.NOT_RECORDED),
    )


def edm(root: Path, steps: list[logs.Step], batch: int = 4096) -> Foms:
    """FOMs of five epochs of these steps as ORBIT-2's diffusion trainer logs them."""
    files = {
        "log_rank0.txt": logs.edm_log([steps] * 5),
        "config.yaml": logs.orbit2_config(batch),
    }
    return logs.foms(root, files)
