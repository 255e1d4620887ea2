"""A small run as the other stages would record it: every test changes what it is about."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfproof.core.files import digest_file, write_record
from perfproof.report.combine import combine
from perfproof.schema.base import Reason
from perfproof.schema.claims import Source, VerifiedClaim, VerifiedSet
from perfproof.schema.config import Recipe, ResolvedRecipe, Workload
from perfproof.schema.foms import Distribution, Foms, Integrity, LossPoint, LossVerdict, Primary
from perfproof.schema.report import Report
from perfproof.schema.run import Artifact, Device, Inventory, Manifest, RankReport, Role, Versions
from perfproof.schema.telemetry import GpuTelemetry, TelemetrySummary
from perfproof.schema.traces import Finding, RankTrace, Table, TraceSummary

RUN = "mace/baseline/nodes-1/rep-0"
KERNEL = "void gemm<float, 128>(float*)"


def changed(record: Any, **changes: Any) -> Any:
    """A copy of a record with other values; for a null give its `Reason`."""
    data = record.model_dump()
    for name, value in changes.items():
        data[name] = None if isinstance(value, Reason) else value
        data.get("reasons", {}).pop(name, None)
        if isinstance(value, Reason):
            data["reasons"][name] = value
    return type(record).model_validate(data)


def make_claim(id_: str = "TR-001", share: float | None = 0.4, **changes: Any) -> VerifiedClaim:
    reasons = {} if share is not None else {"share_of_step": Reason.NOT_APPLICABLE}
    values: dict[str, Any] = {
        "id": id_,
        "class": "cpu_dispatch",
        "source": "trace" if id_.startswith("TR") else "telemetry",
        "statement": f"statement of {id_}",
        "metric": "gpu_idle_fraction",
        "params": {"rank": 0, "kernel": "gemm"},
        "value": 0.4,
        "unit": "fraction",
        "share_of_step": share,
        "ranks": [0],
        "evidence": [{"file": "tables/rank-0/idle.csv", "where": "cause=host_late"}],
        "remedy": "fewer launches",
        "levers": ["compile"],
        "verdict": "verified",
        "verifier_value": 0.41,
        "tolerance": 0.02,
        "note": "union of intervals in the raw trace",
        "reasons": reasons,
    }
    return VerifiedClaim.model_validate(values | changes)


def make_integrity() -> Integrity:
    return Integrity(
        model="mace",
        workload="embedded",
        cluster="local",
        log_format="hydragnn",
        step_time_source="step_record",
        ranks=1,
        nominal_batch_per_rank=32,
        realised_batches_per_rank=[31, 32],
        batches_per_epoch=20,
        samples_per_epoch=640,
        partial_step_fraction=0.05,
        dtype="float32",
        node_list=["node-a"],
        device_name="NVIDIA H200",
        hbm_reserved_bytes=12 * 2**30,
        profiled_steps_excluded=3,
        steady_steps=40,
        recipe_digest="ab" * 32,
    )


def make_foms() -> Foms:
    times = [0.1 + 0.001 * (step % 5) for step in range(40)]
    primary = Primary(
        name="throughput_samples_per_s",
        unit="samples/s",
        direction="higher",
        value=312.5,
        method="realised_batch_over_step_time",
    )
    return Foms(
        run_id=RUN,
        primary=primary,
        step_time_s=Distribution(
            n=40, mean=0.102, median=0.102, p5=0.1, p95=0.104, standard_error=0.0002
        ),
        steady_step_times_s=times,
        throughput_samples_per_s=312.5,
        throughput_method="realised_batch_over_step_time",
        epoch_time_s=2.05,
        samples_per_epoch=640,
        hbm_reserved_bytes=12 * 2**30,
        hbm_reserved_fraction=0.09,
        loss_curve=[LossPoint(epoch=e, loss=1.0 / (1 + e)) for e in range(4)],
        final_loss=0.25,
        non_finite_count=0,
        loss_verdict=LossVerdict.DECREASING,
        integrity=make_integrity(),
    )


def make_rank(rank: int = 0, **changes: Any) -> RankTrace:
    values: dict[str, Any] = {
        "rank": rank,
        "file": f"trace_rank{rank}.json.gz",
        "world_size": 1,
        "device_name": "NVIDIA H200",
        "events": 5000,
        "gpu_events": 900,
        "unlinked_gpu_events": 0,
        "steps": list(range(12)),
        "window_kind": "steps",
        "window_start_ns": 1000,
        "window_duration_ns": 12 * 153_000_000,
        "base_time_ns": 1_700_000_000_000_000_000,
        "tables": {},
        "findings": [Finding(code="steps", severity="info", value=12, message="12 steps")],
    }
    return RankTrace.model_validate(values | changes)


def make_telemetry() -> TelemetrySummary:
    gpu = GpuTelemetry(
        gpu=0,
        samples=30,
        utilization_mean_percent=61.5,
        memory_busy_mean_percent=20.5,
        power_mean_w=412.25,
        memory_used_max_bytes=13 * 2**30,
        sm_clock_mean_mhz=1980,
        temperature_max_c=54,
        power_throttle_fraction=0,
        thermal_throttle_fraction=0,
        energy_j=12_345.6,
        energy_span_s=29.9,
    )
    return TelemetrySummary(
        run_id=RUN,
        file="telemetry.csv",
        window_start_unix_s=1_700_000_000.25,
        window_end_unix_s=1_700_000_030.25,
        sampling_interval_s=0.05,
        gpus=[gpu],
    )


def make_inventory() -> Inventory:
    artifact = Artifact(
        path="log_rank0.txt", role=Role.LOG, rank=0, size_bytes=2048, blake3="cd" * 32
    )
    return Inventory(run_id=RUN, root="runs/mace", artifacts=[artifact])


def make_manifest(**changes: Any) -> Manifest:
    device = Device(
        kind="gpu", name="NVIDIA H200", vendor="nvidia", arch="sm_90", memory_bytes=1, count=1
    )
    names = [name for name in Versions.model_fields if name not in {"python", "reasons"}]
    versions: dict[str, Any] = dict.fromkeys(names)
    resolved = ResolvedRecipe(
        trial="baseline",
        levers=[],
        workload=Workload.EMBEDDED,
        cluster="local",
        nodes=1,
        ranks=1,
        recipe=Recipe(model="mace", description="a potential"),
        env={},
    )
    manifest = Manifest(
        run_id=RUN,
        state="completed",
        exit_code=0,
        ended_by="exit",
        started_at="2026-01-02T03:04:05Z",
        ended_at="2026-01-02T03:05:05Z",
        duration_s=60.0,
        node_list=["node-a"],
        slurm_job_id=None,
        command=["train"],
        resolved=resolved,
        recipe_digest="ab" * 32,
        rank0=RankReport(
            world_size=1,
            device=device,
            versions=Versions(
                python="3.11", **versions, reasons=dict.fromkeys(names, Reason.NOT_RECORDED)
            ),
            dtype="float32",
            num_workers=0,
            env={},
        ),
        reasons={"slurm_job_id": Reason.NOT_APPLICABLE},
    )
    return Manifest.model_validate(changed(manifest, **changes))


@dataclass
class Parts:
    """The inputs of `combine`; tests replace some and call `report`."""

    inventory: Inventory = field(default_factory=make_inventory)
    foms: Foms = field(default_factory=make_foms)
    traces: TraceSummary = field(
        default_factory=lambda: TraceSummary(run_id=RUN, ranks=[make_rank()])
    )
    telemetry: TelemetrySummary = field(default_factory=make_telemetry)
    claims: list[VerifiedClaim] = field(default_factory=lambda: [make_claim()])
    manifest: Manifest | None = field(default_factory=make_manifest)
    profiled_step_s: float | None = 0.153

    def verified(self) -> list[VerifiedSet]:
        return [
            VerifiedSet(
                run_id=RUN, source=source, claims=[c for c in self.claims if c.source is source]
            )
            for source in Source
        ]

    def report(self) -> Report:
        return combine(
            self.inventory,
            self.foms,
            self.traces,
            self.telemetry,
            self.verified(),
            self.manifest,
            self.profiled_step_s,
        )


@pytest.fixture
def parts() -> Parts:
    return Parts()


def write_table(base: Path, file: str, rows: list[dict[str, Any]]) -> Table:
    path = base / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return Table(file=file, rows=len(rows), blake3=digest_file(path))


def timeline_rows(
    computation: float, comm: float, copies: float, idle: float
) -> list[dict[str, Any]]:
    times = {
        "computation_time": computation,
        "exposed_comm_time": comm,
        "exposed_memcpy_time": copies,
        "idle_time": idle,
        "total_time": computation + comm + copies + idle,
    }
    total = times["total_time"]
    return [
        {"type": name, "time ms": time, "percent": 100 * time / total}
        for name, time in times.items()
    ]


def step_rows(steps: list[int]) -> list[dict[str, Any]]:
    return [{"step": step, "duration_us": 153_000.0} for step in steps]


def kernel_rows(names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "kernel": name,
            "count": 12,
            "sum_us": 900.0 - i,
            "union_us": 900.0 - i,
            "fraction_of_window": (900.0 - i) / 1836e3,
            "mean_us": 75.0,
            "group": "gemm",
        }
        for i, name in enumerate(names)
    ]


def with_tables(base: Path, ranks: list[RankTrace], kernels: list[str]) -> TraceSummary:
    """Write the tables that the page reads below `base` and the summary that names them."""
    found = []
    for rank in ranks:
        folder = f"tables/rank-{rank.rank}"
        timeline = timeline_rows(700.0 + rank.rank, 90.5, 10.25, 1035.25)
        tables = {
            "window_timeline": write_table(base, f"{folder}/window_timeline.csv", timeline),
            "steps": write_table(base, f"{folder}/steps.csv", step_rows(rank.steps)),
            "top_kernels": write_table(base, f"{folder}/top_kernels.csv", kernel_rows(kernels)),
        }
        found.append(changed(rank, tables={name: t.model_dump() for name, t in tables.items()}))
    summary = TraceSummary(run_id=RUN, ranks=found)
    write_record(base / "tables/trace_summary.json", summary)
    return summary


@pytest.fixture
def analysis(tmp_path: Path, parts: Parts) -> Callable[..., Path]:
    """Write an analysis directory for `parts` with these kernels; the report is in it."""

    def write(kernels: list[str] | None = None) -> Path:
        parts.traces = with_tables(tmp_path, parts.traces.ranks, kernels or [KERNEL])
        write_record(tmp_path / "inventory.json", parts.inventory)
        write_record(tmp_path / "foms.json", parts.foms)
        write_record(tmp_path / "telemetry_summary.json", parts.telemetry)
        for part in parts.verified():
            write_record(tmp_path / f"verified/{part.source}.json", part)
        write_record(tmp_path / "combined_report.json", parts.report())
        return tmp_path

    return write


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """The factories, for tests that need one more record."""
    return SimpleNamespace(
        claim=make_claim,
        rank=make_rank,
        changed=changed,
        manifest=make_manifest,
        table=write_table,
        timeline=timeline_rows,
        kernels=kernel_rows,
    )
