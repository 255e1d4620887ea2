"""Against a module with amdsmi's interface: the package comes with ROCm alone."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from perfproof.training.collectors.amd import Amd, known, summed
from perfproof.training.collectors.reading import AbsentError

METRICS: dict[str, Any] = {
    "average_gfx_activity": 93,
    "average_umc_activity": 0xFFFF,
    "average_socket_power": "N/A",
    "current_socket_power": 1012,
    "average_gfxclk_frequency": 0,
    "current_gfxclk": 2400,
    "average_uclk_frequency": 1900,
    "temperature_hotspot": 71,
    "temperature_mem": "N/A",
    "indep_throttle_status": 0xFFFFFFFFFFFFFFFF,
    "xgmi_read_data_acc": [10, "N/A", 20],
    "xgmi_write_data_acc": ["N/A", "N/A"],
}


class SmiError(Exception):
    pass


def install(monkeypatch: pytest.MonkeyPatch, metrics: dict[str, Any], cards: int = 1) -> None:
    def energy(_: object) -> dict[str, float]:
        return {"energy_accumulator": 1000000, "counter_resolution": 15.259}

    def refuse(*_: object) -> int:
        raise SmiError

    module = SimpleNamespace(
        AmdSmiException=SmiError,
        AmdSmiMemoryType=SimpleNamespace(VRAM=0),
        amdsmi_init=lambda: None,
        amdsmi_get_processor_handles=lambda: list(range(cards)),
        amdsmi_get_gpu_metrics_info=lambda _: metrics,
        amdsmi_get_gpu_memory_total=lambda *_: 288,
        amdsmi_get_gpu_memory_usage=lambda *_: 72,
        amdsmi_get_energy_count=energy,
        refuse=refuse,
    )
    monkeypatch.setitem(sys.modules, "amdsmi", module)


def read(amd: Amd) -> dict[str, float]:
    found = {}
    for name, labels, value in amd.read():
        rest = [v for k, v in labels if k in ("location", "reason")]
        found["/".join([name, *rest])] = value
    return found


def test_what_is_known_is_read_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, METRICS)
    assert read(Amd()) == {
        "rocm_num_gpus": 1,
        "rocm_utilization_percentage": 93,
        "rocm_vram_total_bytes": 288,
        "rocm_vram_used_percentage": 25,
        "perfproof_vram_used_bytes": 72,
        "rocm_average_socket_power_watts": 1012,
        "rocm_energy_joules": pytest.approx(15.259),
        "rocm_sclk_clock_mhz": 2400,
        "rocm_mclk_clock_mhz": 1900,
        "rocm_temperature_celsius/hotspot": 71,
        "rocm_xgmi_total_read_kilobytes": 30,
    }


def test_throttling_by_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, METRICS | {"indep_throttle_status": 1 << 1 | 1 << 33})
    active = {k: v for k, v in read(Amd()).items() if "throttle" in k}
    assert {k.split("/")[1] for k, v in active.items() if v} == {"power_cap", "thermal"}
    assert len(active) == 4


def test_throttling_by_counted_time(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = METRICS | {"ppt_residency_acc": 5, "socket_thm_residency_acc": 7}
    install(monkeypatch, metrics)
    amd = Amd()
    assert not [name for name in read(amd) if "throttle" in name]
    metrics["ppt_residency_acc"] = 9
    found = read(amd)
    assert found["perfproof_throttled/power_cap"] == 1
    assert found["perfproof_throttled/thermal"] == 0
    assert "perfproof_throttled/other" not in found


def test_a_card_that_answers_nothing_has_no_series(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, METRICS)
    amd = Amd()
    for name in (
        "amdsmi_get_gpu_metrics_info",
        "amdsmi_get_gpu_memory_total",
        "amdsmi_get_gpu_memory_usage",
        "amdsmi_get_energy_count",
    ):
        setattr(sys.modules["amdsmi"], name, sys.modules["amdsmi"].refuse)
    assert read(amd) == {"rocm_num_gpus": 1}


def test_without_package_or_cards_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, METRICS, cards=0)
    with pytest.raises(AbsentError, match="no GPU"):
        Amd()
    monkeypatch.setattr(sys.modules["amdsmi"], "amdsmi_init", lambda: 1 / 0)
    with pytest.raises(AbsentError, match="ZeroDivisionError"):
        Amd()
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(AbsentError, match="not importable"):
        Amd()


@pytest.mark.parametrize("value", ["N/A", None, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, True])
def test_stand_ins_for_unknown(value: object) -> None:
    assert known(value) is None


def test_links_are_summed_where_there_are_any() -> None:
    assert summed([1, 2, "N/A"]) == 3
    assert summed([]) is None
    assert summed(None) is None
