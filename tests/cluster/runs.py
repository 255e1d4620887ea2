"""Manifests of runs in the states that tests need."""

from __future__ import annotations

from perfproof.schema.base import Reason
from perfproof.schema.config import Recipe, ResolvedRecipe, Workload
from perfproof.schema.run import Manifest, State


def manifest(state: State, exit_code: int | None = None, job_id: str | None = None) -> Manifest:
    """A run's manifest: complete, unless the run is still running."""
    ended = state is not State.RUNNING
    values = {
        "exit_code": exit_code,
        "ended_at": "2026-01-31T12:10:00.000Z" if ended else None,
        "duration_s": 600.0 if ended else None,
        "slurm_job_id": job_id,
        "rank0": None,
    }
    resolved = ResolvedRecipe(
        trial="baseline",
        levers=[],
        workload=Workload.EMBEDDED,
        cluster="local",
        nodes=1,
        ranks=1,
        recipe=Recipe(model="m", description="a model"),
        env={},
    )
    return Manifest.model_validate(
        {
            "run_id": "m/trials/baseline/nodes-1/rep-0",
            "state": state,
            "ended_by": "exit" if ended else "running",
            "started_at": "2026-01-31T12:00:00.000Z",
            "node_list": ["a1"],
            "command": ["train"],
            "resolved": resolved,
            "recipe_digest": "0",
            "reasons": {k: Reason.RUN_INCOMPLETE for k, v in values.items() if v is None},
        }
        | values
    )
