"""Loops as they were recorded, on a CPU and on an H200: replayed, and judged by what is known.

True levers and false ones: a variable that nothing reads is none; more loader workers change the
batches; bfloat16 is far faster on the GPU and slower on the CPU.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workflow.chain import run_step

LOOPS = Path(__file__).parents[1] / "data" / "loops"
EXPECTED = {
    "orbit2-cpu": {
        "accepted": {"omp_threads_2"},
        "rejected": {"bf16", "activation_checkpointing_toggle"},
        "not_comparable": {"num_workers_2", "num_workers_4"},
        "no_op": {"sdpa_flash"},
        "loss": {"batch_16"},
    },
    "orbit2-h200": {"accepted": {"bf16"}},
    "hydragnn-h200": {"accepted": set(), "loss": {"batch_16"}, "diagnosed": {"precision_fp32"}},
}
GAIN = {"orbit2-cpu": (0.2, 0.6), "orbit2-h200": (3.5, 4.1)}


def replayed(name: str, out: Path, *options: object) -> tuple[int, dict[str, object]]:
    folder = LOOPS / name
    confirm = folder / "complete" / "confirm"
    more = ("--confirm", confirm) if confirm.is_dir() else ()
    code, _ = run_step("levers.replay", "--loop", folder, *more, *options, "--out-dir", out)
    return code, json.loads((out / "replay.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_loops_are_judged_rightly(name: str, tmp_path: Path) -> None:
    recorded = sorted((LOOPS / name / "steps").glob("*.json"))[-1]
    status = {r["id"]: r["status"] for r in json.loads(recorded.read_text())["levers"]}
    for word, levers in EXPECTED[name].items():
        assert {lever for lever, found in status.items() if found == word} == levers
    assert status["null_unread_variable"] == "inconclusive"


@pytest.mark.parametrize("name", EXPECTED)
def test_todays_policy_accepts_the_same_levers(name: str, tmp_path: Path) -> None:
    """As far as the recorded runs reach: where it wants another one, it says which."""
    code, found = replayed(name, tmp_path)
    assert code == 0
    levers = {lever["lever"]: lever for lever in found["levers"]}  # type: ignore[attr-defined]
    accepted = {name for name, lever in levers.items() if lever["replayed"] == "accepted"}
    assert accepted == EXPECTED[name]["accepted"]
    assert found["missing"] or found["best"] == found["recorded_best"]


@pytest.mark.parametrize("name", GAIN)
def test_the_gain_is_the_confirmation(name: str) -> None:
    (last,) = (LOOPS / name / "complete" / "confirm").glob("*.json")
    gain = json.loads(last.read_text())["confirmation"]
    low, high = GAIN[name]
    assert low < gain["interval"][0] < gain["effect"] < gain["interval"][1]
    assert gain["effect"] < high


def test_a_stricter_policy_says_which_run_it_lacks(tmp_path: Path) -> None:
    code, found = replayed("orbit2-cpu", tmp_path, "--decision", '{"baseline_runs": 60}')
    assert code == 0
    assert found["missing"][0]["trial"] == "baseline"  # type: ignore[index]
