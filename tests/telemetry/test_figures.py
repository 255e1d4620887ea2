"""Figures of runs with an export, and what becomes of bad ones."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import pytest

from perfproof.artifacts.inventory import take_inventory
from perfproof.foms.assemble import foms_of
from perfproof.schema.base import Reason
from perfproof.schema.telemetry import TelemetryFigure, TelemetrySummary
from perfproof.telemetry.figures import Scene, values_of
from perfproof.telemetry.nvml import from_table
from perfproof.telemetry.queries import QUERIES
from perfproof.telemetry.read import read_telemetry
from perfproof.telemetry.summarize import summarize
from tests.telemetry.exports import CLOCK, UTIL, card, counter, export_run, host, job, series
from tests.telemetry.recorded import T0

CARDS = [line for number in range(4) for line in card(number)]


def figures(summary: TelemetrySummary) -> dict[str, TelemetryFigure]:
    return {one.id: one for one in summary.figures}


def summary_of(tmp_path: Path, lines: list[Any], **changes: Any) -> TelemetrySummary:
    return summarize(export_run(tmp_path / "run", lines, **changes))


def test_every_figure_is_there_with_a_number_or_a_reason(tmp_path: Path) -> None:
    found = figures(summary_of(tmp_path, [*CARDS, *host()]))
    assert list(found) == list(QUERIES)
    assert found["gpu_utilization"].value == 90
    assert (found["power"].value, found["power_total"].value) == (500, 2000)
    assert found["host_memory_used"].value == 960
    assert found["memory_used"].value == pytest.approx(310)  # 31 % of 1000 B at 21 s
    for name in ("hbm_read_average", "hbm_read_burst", "link_read_average"):
        assert found[name].reasons["value"] is Reason.NOT_RECORDED
    assert (found["gpu_utilization"].n, found["gpu_utilization"].coverage) == (9, 1.0)


def test_cards_are_records_as_those_of_a_table(tmp_path: Path) -> None:
    gpus = summary_of(tmp_path, CARDS).gpus
    assert [(gpu.gpu, gpu.instance, gpu.samples) for gpu in gpus] == [
        (number, "a1", 9) for number in range(4)
    ]
    assert (gpus[0].energy_j, gpus[0].energy_span_s) == (4000, 8)
    assert gpus[0].memory_used_max_bytes == 310
    assert gpus[0].reasons["power_throttle_fraction"] is Reason.NOT_RECORDED


def test_one_slow_card_is_named(tmp_path: Path) -> None:
    lines = [line for node in ("a1", "a2") for n in range(2) for line in
             card(n, node, clock=1200 if (node, n) == ("a2", 1) else 2000)]  # fmt: skip
    clock = figures(summary_of(tmp_path, lines))["core_clock"]
    assert clock.value == 1800
    assert clock.per_card is not None
    assert clock.per_node is not None
    assert (clock.per_card.lowest_at, clock.per_card.lowest) == ("a2/1", 1200)
    assert (clock.per_node.lowest_at, clock.per_node.lowest) == ("a2", 1600)


def test_counters_become_rates(tmp_path: Path) -> None:
    lines = [*card(0), counter("SQ_INSTS_VALU_MFMA_MOPS_BF16", per_second=1e9)]
    found = figures(summary_of(tmp_path, lines))
    assert found["matrix_bf16_average"].value == pytest.approx(0.512)
    assert found["matrix_bf16_burst"].value == pytest.approx(0.512)
    assert (found["matrix_bf16_average"].method, found["matrix_bf16_burst"].method) == (
        "rate", "burst",
    )  # fmt: skip


def test_an_empty_export_is_unreadable(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, [])
    assert set(summary.reasons.values()) == {Reason.UNREADABLE}
    assert "no series" in summary.problems[0].what


def test_one_metric_missing_leaves_the_others(tmp_path: Path) -> None:
    lines = [line for line in CARDS if line["metric"]["__name__"] != CLOCK]
    summary = summary_of(tmp_path, lines)
    assert figures(summary)["core_clock"].reasons["value"] is Reason.NOT_RECORDED
    assert summary.gpus[0].reasons["sm_clock_mean_mhz"] is Reason.NOT_RECORDED
    assert summary.gpus[0].power_mean_w == 500


def test_a_counter_that_resets_is_null_and_the_sum_with_it(tmp_path: Path) -> None:
    lines = [*card(0), *card(1)]
    lines[5] = series("rocm_energy_joules", lambda s: s % 7, instance="a1", card="0")
    summary = summary_of(tmp_path, lines)
    energy = figures(summary)["energy"]
    assert energy.reasons["value"] is Reason.COUNTER_RESET
    assert [one.value for one in energy.readings] == [None, 4000]


def test_a_card_that_vanishes_is_named(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, [*card(0), *card(1, seconds=range(15)), *card(2, seconds=[1])])
    assert [problem.what.split(";")[0] for problem in summary.problems] == [
        "card a1/1: no sample in the last 7 s of steady time",
        "card a1/2: no sample in steady time, while other cards have some",
    ]
    assert [gpu.samples for gpu in summary.gpus] == [9, 2, 0]
    coverage = figures(summary)["power"].coverage
    assert coverage is not None
    assert coverage < 0.3


def test_samples_outside_the_job_are_counted(tmp_path: Path) -> None:
    line = series(UTIL, lambda _: 50, range(-5, 40), instance="a1", card="0")
    summary = summary_of(tmp_path, [line])
    assert summary.samples_outside_job == 5 + 9
    assert summary.gpus[0].utilization_mean_percent == 50


def test_duplicates_are_counted_once(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, [*card(0), *card(0)])
    assert summary.samples_duplicate == 6 * 30
    assert summary.gpus[0].samples == 9


def test_a_job_of_three_seconds_has_its_reasons(tmp_path: Path) -> None:
    steps = [T0 + 0.5 + 0.1 * n for n in range(25)]
    seconds = [n / 2 for n in range(7)]
    summary = summary_of(tmp_path, card(0, seconds=seconds), steps=steps, span=(T0, T0 + 3))
    found = figures(summary)
    assert summary.gpus[0].samples == 2
    assert found["power"].value == 500
    assert found["hbm_read_burst"].reasons["value"] is Reason.NOT_RECORDED
    assert found["energy"].value == 250


def test_a_store_of_several_jobs_needs_this_runs_id(tmp_path: Path) -> None:
    lines = [*card(0), *card(0, "b1", util=10), job("a1", "7"), job("b1", "8")]
    summary = summary_of(tmp_path, lines)
    assert "none of them this run's (not on record)" in summary.problems[0].what
    assert figures(summary)["power"].value is None


def test_without_telemetry_foms_have_none_and_with_it_the_energy_of_a_sample(
    shared_data: Path,
) -> None:
    inventory = take_inventory(shared_data / "runs/orbit2/117m_fp32_b8_trace", "x")
    summary = summarize(inventory)
    assert foms_of(inventory).telemetry == []
    foms = foms_of(inventory, None, summary)
    found = {one.id: one.value for one in foms.telemetry}
    rate = foms.throughput_samples_per_s
    assert rate is not None
    assert found["power"] is not None
    assert found["energy_per_sample_by_power"] == pytest.approx(found["power"] / rate)
    assert found["energy_per_sample_by_counter"] == pytest.approx(
        found["energy_per_sample_by_power"], rel=0.05
    )


STEP = re.compile(r"\[lab\] step\b.*? i=(\d+) t=(\S+) dt=(\S+)")


def drivers_window(root: Path, steps: int) -> tuple[int, int]:
    """The time of the steps that the recording driver called steady.

    Its last ones, or where the last epoch is profiled, those before it until it begins.
    """
    text = (root / "log_rank0.txt").read_text(encoding="utf-8", errors="replace")
    records = [(int(i), float(time), dt) for i, time, dt in STEP.findall(text)]
    first = 3 if root.parent.name == "hydragnn" else 0
    times = [time for i, time, dt in records if i >= first and dt != "nan"]
    if first and any(root.glob("*trace*.json.gz")):
        start, last = times[0], times[steps - 1]
        end = next(time for _, time, _ in records if time > last)
    else:
        start, end = times[-steps], times[-1]
    return math.ceil(start * 1000), math.floor(end * 1000)


def rows(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "runs" / "results.csv").open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["util_mean"]]


def test_recorded_runs_equal_the_figures_of_the_recording_driver(shared_data: Path) -> None:
    """In its window, all 19 runs: samples, utilization, power and memory."""
    assert len(rows(shared_data)) == 19
    for row in rows(shared_data):
        root = shared_data / "runs" / row["model"] / row["config"]
        store = from_table(read_telemetry(root / "telemetry.csv"))
        scene = Scene(store, [drivers_window(root, int(row["n"]))])
        for name, column, places in (
            ("gpu_utilization", "util_mean", 1),
            ("power", "power_mean", 1),
        ):
            every = values_of(QUERIES[name], scene).items()
            values = [one for place, one in every if int(place[1]) < int(row["ranks"])]
            parts = [one.value * one.samples for one in values if isinstance(one.value, float)]
            samples = sum(one.samples for one in values)
            assert samples == int(row["telemetry_n"]), row
            expected = float(row[column])
            assert sum(parts) / samples == pytest.approx(expected, abs=0.51 * 10.0**-places), row
        used = [one.value for one in values_of(QUERIES["memory_used"], scene).values()]
        assert max(value for value in used if isinstance(value, float)) == pytest.approx(
            int(row["mem_max_mib"]) * 2**20, abs=2**19
        ), row
