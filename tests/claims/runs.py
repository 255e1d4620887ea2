"""Records that other stages would have made, and the path from trace to verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfproof.claims import analyze_trace, verify_trace
from perfproof.core.files import write_record
from perfproof.schema.base import Reason
from perfproof.schema.claims import ClaimSet, VerifiedSet
from perfproof.schema.config import Recipe, ResolvedRecipe, Workload
from perfproof.schema.foms import Distribution, Foms, Integrity, LossVerdict, Primary
from perfproof.schema.levers import LeverCatalog
from perfproof.schema.run import Device, Inventory, Manifest, RankReport, State, Versions
from perfproof.schema.traces import TraceSummary
from perfproof.traces.tables import analyse
from tests.claims.kineto import inventory_of

MISSING = Reason.NOT_RECORDED


def make_manifest(nodes: int, ranks: int, memory_bytes: int | None = None) -> Manifest:
    """A finished run of `ranks` on `nodes`."""
    resolved = ResolvedRecipe(
        trial="baseline", levers=[], workload=Workload.EMBEDDED, cluster="test", nodes=nodes,
        ranks=ranks, recipe=Recipe(model="hydragnn", description="small"), env={},
    )  # fmt: skip
    device = Device(
        kind="gpu", name="GPU", vendor="nvidia", arch=None, memory_bytes=memory_bytes, count=1,
        reasons={"arch": MISSING, **({} if memory_bytes else {"memory_bytes": MISSING})},
    )  # fmt: skip
    nulls = [name for name in Versions.model_fields if name not in ("python", "reasons")]
    versions = Versions.model_validate(
        {"python": "3.11", **dict.fromkeys(nulls), "reasons": dict.fromkeys(nulls, MISSING)}
    )
    return Manifest(
        run_id="artifacts/hand-made", state=State.COMPLETED, exit_code=0, ended_by="exit",
        started_at="2023-11-14T22:13:20Z", ended_at="2023-11-14T22:13:50Z", duration_s=30,
        node_list=[f"n{number}" for number in range(nodes)], slurm_job_id=None, command=["train"],
        resolved=resolved, recipe_digest="0" * 64,
        rank0=RankReport(world_size=ranks, device=device, versions=versions, dtype="float32",
                         num_workers=0, env={}),
        reasons={"slurm_job_id": Reason.NOT_APPLICABLE},
    )  # fmt: skip


def make_foms(step_time_s: float | None, steady_steps: int = 20) -> Foms:
    """FOMs of a run whose unprofiled step takes `step_time_s`."""
    spread = step_time_s and Distribution(
        n=20, mean=step_time_s, median=step_time_s, p5=step_time_s, p95=step_time_s,
        standard_error=0.0,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "run_id": "artifacts/hand-made",
        "primary": Primary(name="x", unit="s", direction="lower", value=None, method=None,
                           reasons={"value": MISSING, "method": MISSING}),
        "step_time_s": spread, "steady_step_times_s": [], "loss_curve": [],
        "non_finite_count": 0, "loss_verdict": LossVerdict.UNKNOWN,
        "integrity": _nulls(Integrity, profiled_steps_excluded=3, steady_steps=steady_steps),
    }  # fmt: skip
    return Foms.model_validate(_nulls(Foms, **fields))


def _nulls(kind: Any, **known: Any) -> Any:
    """A record with every other field null."""
    skip = {"reasons", "problems", "schema_version", "telemetry"}
    missing = [n for n in kind.model_fields if n not in skip and known.get(n) is None]
    return kind.model_validate(
        {**known, **dict.fromkeys(missing), "reasons": dict.fromkeys(missing, MISSING)}
    )


def through(
    tmp_path: Path,
    foms: Foms | None = None,
    catalog: LeverCatalog | None = None,
) -> tuple[ClaimSet, VerifiedSet]:
    """From the traces in `tmp_path/run` to claims and verdicts."""
    inventory = inventory_of(tmp_path / "run")
    claims = claims_of(tmp_path, inventory, foms, catalog)
    write_record(tmp_path / "claims" / "trace.json", claims)
    return claims, verify_trace.verify(tmp_path / "claims" / "trace.json", inventory)


def claims_of(
    tmp_path: Path,
    inventory: Inventory,
    foms: Foms | None = None,
    catalog: LeverCatalog | None = None,
    summary: TraceSummary | None = None,
) -> ClaimSet:
    """Tables by the trace stage, claims by the analyst."""
    summary = summary or analyse(inventory, Path(inventory.root), tmp_path)
    return analyze_trace.analyze(summary, tmp_path, inventory, foms, catalog)
