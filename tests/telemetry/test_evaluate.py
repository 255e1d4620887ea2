"""The built-in evaluator on series made for the purpose."""

from __future__ import annotations

import numpy as np
import pytest

from perfproof.telemetry.evaluate import evaluate, tile_ends
from perfproof.telemetry.queries import QUERIES
from perfproof.telemetry.registry import TILE_MS
from perfproof.telemetry.store import Series, Store


def stored(*lines: tuple[str, dict[str, str], list[int], list[float]]) -> Store:
    store = Store()
    for name, labels, times, values in lines:
        store.add(name, Series(labels, np.array(times, np.int64), np.array(values, float)))
    return store


A, B = {"instance": "a1", "card": "0"}, {"instance": "b1", "card": "0"}
UTIL = "rocm_utilization_percentage"
READ = {**A, "name": "FETCH_SIZE"}


def test_only_samples_of_the_window_count() -> None:
    store = stored((UTIL, A, [0, 1000, 2000, 3000], [0, 10, 20, 90]))
    found = evaluate(QUERIES["gpu_utilization"], store, (1000, 2000))
    reading = found["a1", "0"]
    assert (reading.value, reading.samples, reading.seconds) == (15, 2, 1)
    assert evaluate(QUERIES["gpu_utilization"], store, (4000, 5000)) == {}


def test_a_rate_is_in_the_unit_of_its_query() -> None:
    store = stored(("omnistat_hardware_counter", READ, [0, 1000, 2000], [0, 1e6, 4e6]))
    found = evaluate(QUERIES["hbm_read_average"], store, (0, 2000))["a1", "0"]
    assert found.value == pytest.approx(2e6 * 1024 / 1e9)


def test_a_sum_formula_needs_every_term() -> None:
    names = ("MFMA_MOPS", "FMA", "ADD", "MUL")
    lines = [
        ("omnistat_hardware_counter", {**A, "name": f"SQ_INSTS_VALU_{name}_F64"},
         [0, 1000], [0.0, 1e9])
        for name in names
    ]  # fmt: skip
    found = evaluate(QUERIES["fp64_average"], stored(*lines), (0, 1000))["a1", "0"]
    assert found.value == pytest.approx((512 + 128 + 64 + 64) / 1000)
    assert evaluate(QUERIES["fp64_average"], stored(*lines[:3]), (0, 1000)) == {}


def test_a_reset_is_seen() -> None:
    store = stored(("rocm_energy_joules", A, [0, 1000, 2000], [50, 60, 5]))
    assert evaluate(QUERIES["energy"], store, (0, 2000))["a1", "0"].resets == 1
    assert evaluate(QUERIES["energy"], store, (0, 1000))["a1", "0"].resets == 0


def test_tiles_lie_whole_in_the_window() -> None:
    assert tile_ends((1, TILE_MS)).tolist() == [TILE_MS]
    assert tile_ends((2, TILE_MS)).tolist() == []
    assert tile_ends((1, 3 * TILE_MS - 1)).tolist() == [TILE_MS, 2 * TILE_MS]


def test_a_burst_is_the_busiest_tile_and_above_the_average() -> None:
    times = list(range(1, 20002, 1000))
    values = [0.0] * 11 + [1e6 * n for n in range(1, 6)] + [5e6] * 5
    store = stored(("omnistat_hardware_counter", READ, times, values))
    burst = evaluate(QUERIES["hbm_read_burst"], store, (0, 20001))["a1", "0"].value
    average = evaluate(QUERIES["hbm_read_average"], store, (0, 20001))["a1", "0"].value
    assert burst == pytest.approx(1e6 * 1024 / 1e9)
    assert average == pytest.approx(5e6 / 20 * 1024 / 1e9)


def test_the_hottest_place_of_a_card_counts() -> None:
    name = "rocm_temperature_celsius"
    store = stored((name, {**A, "location": "edge"}, [0], [50]),
                   (name, {**A, "location": "hotspot"}, [0], [70]))  # fmt: skip
    assert evaluate(QUERIES["temperature"], store, (0, 0))["a1", "0"].value == 70


def test_a_job_has_its_nodes_only() -> None:
    info = "rmsjob_info"
    store = stored(
        (UTIL, A, [1000], [10]), (UTIL, B, [1000], [20]),
        (info, {"instance": "a1", "jobid": "7"}, [1000], [1]),
        (info, {"instance": "b1", "jobid": "8"}, [1000], [1]),
    )  # fmt: skip
    assert list(evaluate(QUERIES["gpu_utilization"], store, (0, 2000), "8")) == [("b1", "0")]
    assert list(evaluate(QUERIES["gpu_utilization"], store, (0, 2000), "9")) == []
    assert len(evaluate(QUERIES["gpu_utilization"], store, (0, 2000))) == 2
