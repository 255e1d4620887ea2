"""The steady window: from the run's own records, never from a file's time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from perfproof.schema.base import Reason
from perfproof.schema.run import Inventory
from perfproof.schema.traces import RankTrace, TraceSummary
from perfproof.telemetry.window import profiled_spans, steady_window
from tests.telemetry.recorded import STEPS, T0, write_run


def relative(inventory: Inventory, *profiled: tuple[float, float]) -> list[tuple[float, float]]:
    spans = [(T0 + a, T0 + b) for a, b in profiled]
    return [
        (round(a - T0, 6), round(b - T0, 6)) for a, b in steady_window(inventory, spans).stretches
    ]


def test_steps_after_warm_up(tmp_path: Path) -> None:
    inventory = write_run(tmp_path)
    assert relative(inventory) == [(11.5, 21.5)]
    assert steady_window(inventory).kind == "steps"


def test_pauses_between_steps_are_left_out(tmp_path: Path) -> None:
    steps = [*STEPS[:10], *(time + 5 for time in STEPS[10:])]
    assert relative(write_run(tmp_path, steps=steps)) == [(11.5, 14.5), (20.0, 26.5)]


def test_profiled_parts_are_left_out(tmp_path: Path) -> None:
    assert relative(write_run(tmp_path), (14, 15), (14.2, 15.5)) == [(11.5, 14.0), (15.5, 21.5)]


def test_the_run_bounds_the_window(tmp_path: Path) -> None:
    assert relative(write_run(tmp_path, span=(T0 + 12, T0 + 20))) == [(12.0, 20.0)]


def test_without_step_times_the_whole_run(tmp_path: Path) -> None:
    inventory = write_run(tmp_path, steps=[])
    assert relative(inventory) == [(0.0, 30.0)]
    assert steady_window(inventory).kind == "run"


@pytest.mark.parametrize(
    "line", ["[lab] step i=0 t=nan", "step t=1700000011.0", "[lab] step dt=1700000011.0", "t=5"]
)
def test_what_is_no_step_time(tmp_path: Path, line: str) -> None:
    inventory = write_run(tmp_path, record=lambda t: line)
    assert steady_window(inventory).kind == "run"


def test_one_rank_of_a_mixed_log_counts(tmp_path: Path) -> None:
    """Two ranks that print a millisecond apart are no steps of a millisecond."""
    inventory = write_run(
        tmp_path,
        record=lambda t: f"[x] step rank=1 t={t + 0.001:.6f}\n[x] step rank=0 t={t:.6f}",
    )
    assert relative(inventory) == [(11.5, 21.5)]


def test_no_times_at_all(tmp_path: Path) -> None:
    window = steady_window(write_run(tmp_path, steps=[], span=None))
    assert (window.kind, window.start, window.end) == ("none", None, None)


def test_steps_outside_the_run_are_a_problem(tmp_path: Path) -> None:
    window = steady_window(write_run(tmp_path, span=(T0 + 100, T0 + 130)))
    assert window.stretches == ()
    assert "outside the run" in window.problems[0].what


def test_a_manifest_comes_before_a_meta_file(tmp_path: Path) -> None:
    write_run(tmp_path, steps=[])
    manifest = {"started_at": "2023-11-14T22:13:25Z", "ended_at": "2023-11-14T22:13:40+00:00"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert relative(write_run(tmp_path, steps=[])) == [(5.0, 20.0)]


@pytest.mark.parametrize("started", ["yesterday", "2023-11-14T22:13:25"])
def test_a_manifest_without_a_real_time_is_a_problem(tmp_path: Path, started: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"started_at": started}))
    window = steady_window(write_run(tmp_path, steps=[]))
    assert window.problems[0].where == "manifest.json"
    assert relative(write_run(tmp_path, steps=[])) == [(0.0, 30.0)]


def test_a_run_that_has_not_ended(tmp_path: Path) -> None:
    manifest = {"started_at": "2023-11-14T22:13:32Z", "ended_at": None}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert relative(write_run(tmp_path)) == [(12.0, 21.5)]


def test_file_times_do_not_matter(tmp_path: Path) -> None:
    inventory = write_run(tmp_path)
    before = steady_window(inventory)
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    assert steady_window(inventory) == before


def rank(start_ns: int | None, base_ns: int | None) -> RankTrace:
    duration = None if start_ns is None else 10**9
    fields = {
        "window_start_ns": start_ns,
        "window_duration_ns": duration,
        "base_time_ns": base_ns,
    }
    missing = [
        "world_size",
        "device_name",
        *(name for name, value in fields.items() if value is None),
    ]
    return RankTrace(
        rank=0, file="t", world_size=None, device_name=None, events=0, gpu_events=0,
        unlinked_gpu_events=0, steps=[], window_kind="steps", tables={}, findings=[],
        reasons=dict.fromkeys(missing, Reason.NOT_RECORDED), **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("start", "base", "expected"),
    [
        (5 * 10**9, int(T0) * 10**9, [(T0 + 5, T0 + 6)]),
        (int(T0 + 5) * 10**9, 0, [(T0 + 5, T0 + 6)]),
        (5 * 10**9, None, []),
        (None, 0, []),
    ],
)
def test_traces_say_when_they_recorded(
    start: int | None, base: int | None, expected: list[tuple[float, float]]
) -> None:
    summary = TraceSummary(run_id="r", ranks=[rank(start, base)])
    assert profiled_spans(summary) == expected
