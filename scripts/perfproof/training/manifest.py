"""The manifest of a run: opened before it starts, completed when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import digest_record, read_record
from perfproof.schema.base import Reason
from perfproof.schema.config import ResolvedRecipe
from perfproof.schema.run import Environment, Manifest, RankReport, State, Telemetry
from perfproof.training.supervise import Ending

MANIFEST_FILE = "manifest.json"
RANK0_FILE = "rank0.json"
RECIPE_FILE = "recipe.json"

_OPEN = ("exit_code", "ended_at", "duration_s", "rank0")


def open_manifest(
    run_id: str,
    resolved: ResolvedRecipe,
    command: Sequence[str],
    nodes: Sequence[str],
    slurm_job_id: str | None,
    environment: Environment,
) -> Manifest:
    """The manifest of a run that is about to start."""
    reasons = dict.fromkeys(_OPEN, Reason.RUN_INCOMPLETE)
    if slurm_job_id is None:
        reasons["slurm_job_id"] = Reason.NOT_APPLICABLE
    return Manifest(
        run_id=run_id,
        state=State.RUNNING,
        exit_code=None,
        ended_by="running",
        started_at=utc_now(),
        ended_at=None,
        duration_s=None,
        node_list=list(nodes),
        slurm_job_id=slurm_job_id,
        command=list(command),
        resolved=resolved,
        recipe_digest=digest_record(resolved),
        environment=environment,
        rank0=None,
        reasons=reasons,
    )


def complete(
    manifest: Manifest, ending: Ending, duration_s: float, run_dir: Path, telemetry: Telemetry
) -> Manifest:
    """The manifest of a run that has ended, with rank 0's report where it left one."""
    rank0, rank0_reason = rank_report(run_dir)
    reasons = {name: why for name, why in manifest.reasons.items() if name not in _OPEN}
    if rank0_reason:
        reasons["rank0"] = rank0_reason
    if ending.exit_code is None:
        reasons["exit_code"] = Reason.NOT_APPLICABLE
    changes = {
        "state": ending.state,
        "exit_code": ending.exit_code,
        "ended_by": ending.ended_by,
        "ended_at": utc_now(),
        "duration_s": round(duration_s, 3),
        "rank0": rank0,
        "telemetry": telemetry,
        "reasons": reasons,
    }
    return Manifest.model_validate(dict(manifest) | changes)


def rank_report(run_dir: Path) -> tuple[RankReport | None, Reason | None]:
    """Rank 0's report, or why there is none."""
    path = run_dir / RANK0_FILE
    if not path.is_file():
        return None, Reason.RUN_INCOMPLETE
    try:
        return read_record(path, RankReport), None
    except InputError:
        return None, Reason.UNREADABLE


def utc_now() -> str:
    """The time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
