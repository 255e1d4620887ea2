"""Against a library of our own with NVIDIA's interface, compiled here: the layouts are real."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perfproof.training.collectors.nvidia import Nvidia, mine
from perfproof.training.collectors.reading import AbsentError, card


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in of NVIDIA's library")
    target = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("standin_nvml.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
    return str(target)


def read(library: str, **env: str) -> dict[tuple[str, str], float]:
    """Readings by metric and card, with the label that is left."""
    found = {}
    for name, labels, value in Nvidia(env, library).read():
        rest = {k: v for k, v in labels if k in ("location", "reason")}
        found["/".join([name, *rest.values()]), dict(labels).get("card", "")] = value
    return found


def test_every_number_has_its_unit(library: str) -> None:
    found = read(library)
    first = {name: value for (name, number), value in found.items() if number == "0"}
    assert {k: v for k, v in first.items() if "throttle" not in k} == {
        "rocm_version_info": 1,
        "rocm_utilization_percentage": 97,
        "rocm_vram_busy_percentage": 41,
        "rocm_vram_total_bytes": 1000,
        "rocm_vram_used_percentage": 25,
        "perfproof_vram_used_bytes": 250,
        "rocm_average_socket_power_watts": 654.321,
        "rocm_power_cap_watts": 700,
        "rocm_energy_joules": 12345678.901,
        "rocm_sclk_clock_mhz": 1980,
        "rocm_mclk_clock_mhz": 3201,
        "rocm_temperature_celsius/gpu": 55,
        "rocm_temperature_memory_celsius/memory": 66,
        "rocm_xgmi_total_read_kilobytes": 6.144e9,
        "rocm_xgmi_total_write_kilobytes": 5.12e9,
    }
    assert found["rocm_num_gpus", ""] == 2


def test_a_power_cap_is_one_reason_of_several(library: str) -> None:
    found = read(library)
    active = {k.split("/")[1]: v for (k, n), v in found.items() if "throttle" in k and n == "0"}
    assert [reason for reason, value in active.items() if value] == ["power_cap", "thermal"]
    assert {"hardware_slowdown", "power_brake", "idle"} <= active.keys()


def test_what_a_card_does_not_say_is_absent(library: str) -> None:
    second = {name for name, number in read(library) if number == "1"}
    assert "rocm_utilization_percentage" in second
    assert not second & {
        "rocm_energy_joules",
        "rocm_temperature_celsius/gpu",
        "rocm_temperature_memory_celsius/memory",
        "rocm_xgmi_total_read_kilobytes",
    }


@pytest.mark.parametrize(
    ("visible", "cards"),
    [(None, [0, 1]), ("1", [1]), ("1,0", [0, 1]), ("GPU-bb", [1]), ("7", []), ("", [])],
)
def test_only_the_jobs_own_cards(visible: str | None, cards: list[int]) -> None:
    assert mine(visible, ["GPU-aaaa", "GPU-bbbb"]) == cards


def test_cards_keep_their_number_on_the_node(library: str) -> None:
    found = read(library, CUDA_VISIBLE_DEVICES="1")
    assert {number for _, number in found} == {"", "1"}
    assert card(1) == (("card", "1"),)


def test_without_driver_or_cards_it_is_absent(library: str) -> None:
    with pytest.raises(AbsentError, match="no-such-library"):
        Nvidia({}, "no-such-library.so")
    with pytest.raises(AbsentError, match="CUDA_VISIBLE_DEVICES leaves no GPU"):
        Nvidia({"CUDA_VISIBLE_DEVICES": "9"}, library)
