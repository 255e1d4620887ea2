"""Telemetry claims: the analyst's from the summary, the verifier's from raw samples."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfproof.artifacts.inventory import take_inventory
from perfproof.claims import metrics_telemetry, verify_telemetry
from perfproof.claims.analyze_telemetry import analyze
from perfproof.claims.verifier import telemetry_times
from perfproof.core.files import read_record, write_record
from perfproof.schema.claims import BottleneckClass, ClaimSet, Verdict, VerifiedClaim, VerifiedSet
from perfproof.schema.foms import Foms
from perfproof.schema.run import Inventory
from perfproof.telemetry import nvml, summarize, window
from tests.claims.kineto import Kineto, claim, write_claims
from tests.claims.runs import make_foms, make_manifest
from tests.telemetry.recorded import T0, row, write_run

CAPACITY = 1100 * 2**20


def a_run(root: Path, **changes: Any) -> Inventory:
    """Steady 11.5..21.5 s, GPU 0 at 40 %, GPU 1 unused, 1021 of 1100 MiB in use."""
    rows = [row(s, util=40 if 13 <= s <= 21 else 99) for s in range(30)]
    rows += [row(s, gpu=1, util=0) for s in range(30)]
    write_run(root, **{"rows": rows, **changes})
    write_record(root / "manifest.json", make_manifest(1, 1, CAPACITY))
    return take_inventory(root, "artifacts/recorded")


def both(
    tmp_path: Path, inventory: Inventory, foms: Foms | None = None
) -> tuple[ClaimSet, VerifiedSet]:
    claims = analyze(summarize.summarize(inventory), inventory, foms)
    write_record(tmp_path / "claims.json", claims)
    return claims, verify_telemetry.verify(tmp_path / "claims.json", inventory)


def test_claims_are_made_and_verified(tmp_path: Path) -> None:
    claims, verdicts = both(tmp_path, a_run(tmp_path / "run"))
    assert [(c.id, c.metric, round(c.value, 4)) for c in claims.claims] == [
        ("TE-001", "gpu_utilization_mean", 0.4),
        ("TE-002", "power_throttle_fraction", round(5 / 9, 4)),
        ("TE-003", "hbm_used_fraction", round(1021 / 1100, 4)),
    ]
    assert claims.claims[0].bottleneck_class is BottleneckClass.CPU_DISPATCH
    assert claims.claims[0].share_of_step == 0.6
    assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}


def test_an_unused_gpu_is_no_bottleneck(tmp_path: Path) -> None:
    claims, _ = both(tmp_path, a_run(tmp_path / "run"))
    assert {claim.params["gpu"] for claim in claims.claims} == {0}


def test_a_run_without_a_steady_step_makes_no_claims(tmp_path: Path) -> None:
    claims, _ = both(tmp_path, a_run(tmp_path / "run"), make_foms(None, steady_steps=0))
    assert claims.claims == []
    assert "no steady step" in claims.problems[0].what


def test_means_of_a_whole_run_are_no_claims_about_steps(tmp_path: Path) -> None:
    claims, verdicts = both(tmp_path, a_run(tmp_path / "run", steps=[]))
    assert {c.metric for c in claims.claims} == {"hbm_used_fraction", "power_throttle_fraction"}
    assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}


def test_fewer_than_five_samples_are_inconclusive(tmp_path: Path) -> None:
    rows = [row(second, util=40) for second in (13, 14, 15, 16)]
    claims, verdicts = both(tmp_path, a_run(tmp_path / "run", rows=rows))
    assert len(claims.claims) == 3
    assert {c.verdict for c in verdicts.claims} == {Verdict.INCONCLUSIVE}
    assert verdicts.claims[0].note == "4 steady samples of GPU 0; expected 5 or more"


def test_heat_is_told_from_power(tmp_path: Path) -> None:
    rows = [row(second).replace(",4", ",64") for second in range(30)]
    claims, verdicts = both(tmp_path, a_run(tmp_path / "run", rows=rows))
    found = {c.metric: c.value for c in claims.claims}
    assert "power_throttle_fraction" not in found
    assert found["thermal_throttle_fraction"] == pytest.approx(5 / 9)
    assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}


def judged(tmp_path: Path, inventory: Inventory, **changes: Any) -> VerifiedClaim:
    made = claim("gpu_utilization_mean", 0.4, "cpu_dispatch") | {
        "id": "TE-001", "source": "telemetry", "ranks": [], "params": {"gpu": 0}, **changes,
    }  # fmt: skip
    path = write_claims(tmp_path / "claims.json", [made], "telemetry")
    record = inventory.model_copy(update={"run_id": "artifacts/hand-made"})
    return verify_telemetry.verify(path, record).claims[0]


@pytest.mark.parametrize(
    ("changes", "verdict", "note"),
    [
        ({}, Verdict.VERIFIED, "9 samples of GPU 0"),
        ({"value": 0.99}, Verdict.REFUTED, "off by"),  # the last sample: stale by then
        ({"value": 0.8}, Verdict.REFUTED, "off by"),  # mean over the whole run
        ({"class": "gpu_compute"}, Verdict.REFUTED, "the vocabulary says"),
        ({"params": {"gpu": 1}}, Verdict.REFUTED, "off by"),
        ({"params": {"gpu": 7}}, Verdict.INCONCLUSIVE, "no sample of GPU 7"),
        ({"params": {}}, Verdict.INCONCLUSIVE, "'gpu' is None"),
        ({"params": {"gpu": "0"}}, Verdict.INCONCLUSIVE, "expected int"),
        ({"metric": "gpu_idle_fraction"}, Verdict.INCONCLUSIVE, "no metric of telemetry"),
        ({"source": "trace"}, Verdict.INCONCLUSIVE, "no metric of telemetry"),
        ({"unit": "percent"}, Verdict.INCONCLUSIVE, "unit"),
        (
            {"metric": "memory_busy_mean", "class": "gpu_memory_hbm"},
            Verdict.VERIFIED,
            "9 samples",
        ),
        (
            {"metric": "hbm_used_fraction", "class": "gpu_memory_hbm", "value": 0.9282},
            Verdict.VERIFIED,
            "",
        ),
    ],
)
def test_claims_by_anybody(
    tmp_path: Path, changes: dict[str, Any], verdict: Verdict, note: str
) -> None:
    found = judged(tmp_path, a_run(tmp_path / "run"), **changes)
    assert (found.verdict, note in found.note) == (verdict, True), found.note


def test_no_capacity_on_record_is_inconclusive(tmp_path: Path) -> None:
    inventory = write_run(tmp_path / "run")
    changes = {"metric": "hbm_used_fraction", "class": "gpu_memory_hbm"}
    assert "how much memory" in judged(tmp_path, inventory, **changes).note


def test_no_telemetry_is_inconclusive(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "telemetry.csv").unlink()
    inventory = take_inventory(tmp_path / "run", "x")
    assert "no telemetry" in judged(tmp_path, inventory).note


def test_no_times_are_inconclusive(tmp_path: Path) -> None:
    inventory = write_run(tmp_path / "run", steps=[], span=None)
    assert "no time for its steps" in judged(tmp_path, inventory).note


def test_both_leave_the_profiled_part_out(tmp_path: Path) -> None:
    """The trace records 15..18 s: samples of that time, and of the second after, do not count."""
    from perfproof.traces.tables import analyse

    trace = Kineto().step(1, 0, 3e6).gpu("k", 0, 2e6, launch=0)
    trace.header["baseTimeNanoseconds"] = int(T0 + 15) * 10**9
    trace.write(tmp_path / "run" / "trace_rank0.json.gz")
    rows = [row(s, util=0 if 15 < s < 19 else 50) for s in range(30)]
    inventory = a_run(tmp_path / "run", rows=rows)
    traces = analyse(inventory, tmp_path / "run", tmp_path)
    summary = summarize.summarize(inventory, traces)
    assert summary.excluded_unix_s == [(T0 + 15, T0 + 18)]
    assert summary.gpus[0].utilization_mean_percent == 50
    found = judged(tmp_path, inventory, value=0.5)
    assert found.verdict is Verdict.VERIFIED, found.note


def test_constants_of_both_sides_agree() -> None:
    assert (window.WARMUP_STEPS, window.PAUSE_FACTOR, window.AVERAGING_S) == (
        telemetry_times._WARMUP_STEPS,
        telemetry_times._LONGEST_STEP,
        telemetry_times._AVERAGING_S,
    )
    assert (
        nvml.THROTTLE_BITS["power_cap"],
        nvml.THROTTLE_BITS["thermal"],
    ) == (metrics_telemetry.POWER_CAP_BITS, metrics_telemetry.THERMAL_BITS)
    assert set(verify_telemetry.RECOMPUTE) == {
        metric.name for metric in metrics_telemetry.TELEMETRY_METRICS
    }


def test_the_command_lines(tmp_path: Path) -> None:
    inventory = a_run(tmp_path / "run")
    write_record(tmp_path / "inventory.json", inventory)
    write_record(tmp_path / "telemetry_summary.json", summarize.summarize(inventory))
    steps: list[tuple[str, list[str | Path]]] = [
        ("analyze_telemetry", ["--telemetry", tmp_path / "telemetry_summary.json", "--levers",
                               "--out", tmp_path / "claims.json"]),
        ("verify_telemetry", ["--claims", tmp_path / "claims.json",
                              "--out", tmp_path / "verified.json"]),
    ]  # fmt: skip
    lines = [
        subprocess.run(
            [sys.executable, "-m", f"perfproof.claims.{name}", *arguments,
             "--inventory", tmp_path / "inventory.json"],
            capture_output=True, text=True, check=True,
        ).stdout.splitlines()[-1]
        for name, arguments in steps
    ]  # fmt: skip
    assert lines == ["STATUS=ok; reason=3 claims", "STATUS=ok; reason=3 verified"]
    assert len(read_record(tmp_path / "verified.json", VerifiedSet).claims) == 3


def rewritten(tmp_path: Path, change: Callable[[str], bytes], name: str) -> Inventory:
    inventory = a_run(tmp_path / "run")
    path = tmp_path / "run" / "telemetry.csv"
    data = change(path.read_text())
    path.unlink()
    path.with_name(name).write_bytes(data)
    return take_inventory(tmp_path / "run", inventory.run_id)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: gzip.compress(text.encode()),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.replace(",0,99,", ",0,inf,").encode(),
        lambda text: (text + f"{T0 + 15},0,100,40,900,100,1900,60,5,0,7\n").encode(),
        lambda text: (text + f"{T0 + 15},inf,100,40,900,100,1900,60,5,0\n").encode(),
        lambda text: (text + f"{T0 + 15},0,5000,40,900,inf,1900,60,,-inf\n").encode(),
    ],
)  # fmt: skip
def test_both_sides_read_the_same_samples(tmp_path: Path, change: Callable[[str], bytes]) -> None:
    name = "telemetry.csv.gz" if change("")[:2] == b"\x1f\x8b" else "telemetry.csv"
    claims, verdicts = both(tmp_path, rewritten(tmp_path, change, name))
    assert {c.metric: round(c.value, 4) for c in claims.claims}["gpu_utilization_mean"] == 0.4
    assert [c.note for c in verdicts.claims if c.verdict is not Verdict.VERIFIED] == []
