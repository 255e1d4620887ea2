"""Sums over the steady window: only samples of steady time, counters differenced."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.artifacts.inventory import take_inventory
from perfproof.core.files import read_record, write_record
from perfproof.schema.base import Reason
from perfproof.schema.telemetry import GpuTelemetry, TelemetrySummary
from perfproof.telemetry.summarize import summarize
from tests.telemetry.recorded import HEADER, STEPS, T0, row, write_run


def one_gpu(summary: TelemetrySummary) -> GpuTelemetry:
    (gpu,) = summary.gpus
    return gpu


def test_means_over_steady_samples(tmp_path: Path) -> None:
    """Steady 11.5..21.5; the second before a sample must be inside: samples 13..21."""
    rows = [row(second, util=90 if 13 <= second <= 21 else 0) for second in range(30)]
    summary = summarize(write_run(tmp_path, rows))
    gpu = one_gpu(summary)
    assert summary.window_kind == "steps"
    assert summary.window_start_unix_s == T0 + 11.5
    assert summary.window_end_unix_s == T0 + 21.5
    assert summary.sampling_interval_s == 1
    assert gpu.samples == 9
    assert gpu.utilization_mean_percent == 90
    assert gpu.memory_busy_mean_percent == 40
    assert gpu.memory_used_max_bytes == 1021 * 2**20
    assert gpu.power_throttle_fraction == pytest.approx(5 / 9)
    assert gpu.thermal_throttle_fraction == 0
    assert (gpu.energy_j, gpu.energy_span_s) == (800, 8)


def test_energy_does_not_bridge_a_pause(tmp_path: Path) -> None:
    steps = [*STEPS[:10], *(time + 5 for time in STEPS[10:])]  # 11.5..14.5 and 20..26.5
    gpu = one_gpu(summarize(write_run(tmp_path, steps=steps)))
    assert gpu.samples == 2 + 6
    assert (gpu.energy_j, gpu.energy_span_s) == (100 + 500, 1 + 5)


def test_a_counter_that_goes_back_gives_no_energy(tmp_path: Path) -> None:
    rows = [row(second, energy=1000 * (second % 15)) for second in range(30)]
    gpu = one_gpu(summarize(write_run(tmp_path, rows)))
    assert gpu.energy_j is None
    assert gpu.reasons["energy_j"] is Reason.COUNTER_RESET
    assert gpu.power_mean_w == 100


def test_a_sampler_that_stopped_gives_null_never_its_last_value(tmp_path: Path) -> None:
    rows = [row(second) for second in range(12)]
    gpu = one_gpu(summarize(write_run(tmp_path, rows)))
    assert gpu.samples == 0
    assert gpu.utilization_mean_percent is None
    assert set(gpu.reasons.values()) == {Reason.TOO_FEW_VALUES}


def test_columns_the_file_lacks(tmp_path: Path) -> None:
    write_run(tmp_path)
    lines = [f"{T0 + s},0,50" for s in range(30)]
    (tmp_path / "telemetry.csv").write_text("\n".join(["unix_ts,gpu,util_gpu_pct", *lines]))
    gpu = one_gpu(summarize(take_inventory(tmp_path, "artifacts/recorded")))
    assert gpu.utilization_mean_percent == 50
    assert gpu.reasons["power_mean_w"] is Reason.NOT_RECORDED
    assert gpu.reasons["energy_span_s"] is Reason.NOT_RECORDED


def test_no_times_mean_no_values(tmp_path: Path) -> None:
    summary = summarize(write_run(tmp_path, steps=[], span=None))
    assert one_gpu(summary).samples == 0
    assert summary.window_kind == "none"
    assert summary.reasons["window_start_unix_s"] is Reason.NOT_RECORDED


def test_several_gpus(tmp_path: Path) -> None:
    rows = [row(second, gpu, util=10 * gpu) for second in range(30) for gpu in (1, 0, 3)]
    summary = summarize(write_run(tmp_path, rows))
    assert [(g.gpu, g.utilization_mean_percent) for g in summary.gpus] == [(0, 0), (1, 10), (3, 30)]


def run_step(tmp_path: Path, run: Path) -> tuple[str, TelemetrySummary]:
    write_record(tmp_path / "inventory.json", take_inventory(run, "artifacts/recorded"))
    done = subprocess.run(
        [sys.executable, "-m", "perfproof.telemetry.summarize", "--inventory",
         tmp_path / "inventory.json", "--out", tmp_path / "telemetry_summary.json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    summary = read_record(tmp_path / "telemetry_summary.json", TelemetrySummary)
    return done.stdout.splitlines()[-1], summary


def test_no_telemetry_is_no_fault(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "telemetry.csv").unlink()
    status, summary = run_step(tmp_path, tmp_path / "run")
    assert status == "STATUS=ok; reason=no telemetry"
    assert (summary.file, summary.gpus) == (None, [])
    assert set(summary.reasons.values()) == {Reason.NO_TELEMETRY}


def test_telemetry_that_cannot_be_read_is_partial(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "telemetry.csv").write_text("nonsense\n")
    status, summary = run_step(tmp_path, tmp_path / "run")
    assert status.startswith("STATUS=partial; reason=telemetry.csv: no column unix_ts or gpu")
    assert summary.file == "telemetry.csv"
    assert set(summary.reasons.values()) == {Reason.UNREADABLE}


def test_a_file_that_changed_since_the_inventory_is_not_used(tmp_path: Path) -> None:
    inventory = write_run(tmp_path)
    write_run(tmp_path, [row(second, util=1) for second in range(30)])
    summary = summarize(inventory)
    assert (summary.gpus, summary.file) == ([], "telemetry.csv")
    assert summary.problems[0].what.startswith("changed since the inventory was taken")
    assert set(summary.reasons.values()) == {Reason.UNREADABLE}


def test_a_second_file_is_named(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "telemetry_node1.csv").write_text(HEADER)
    (problem,) = summarize(write_run(tmp_path)).problems
    assert problem.where == "telemetry_node1.csv"


def test_recorded_runs_agree_with_their_independent_figures(shared_data: Path) -> None:
    """Utilization and power of steady steps as the recording driver computed them."""
    for name, utilization, power in (
        ("hydragnn/egnn_fp64_b40_h1000_ddp2_rep1", 94.0, 686.1),
        ("orbit2/117m_bf16_b8_rep1", 86.5, 601.0),
        ("hydragnn/mace_fp32_b128", 92.3, 435.5),
    ):
        gpu = summarize(take_inventory(shared_data / "runs" / name, "x")).gpus[0]
        assert gpu.utilization_mean_percent == pytest.approx(utilization, rel=0.02)
        assert gpu.power_mean_w == pytest.approx(power, rel=0.02)
