"""AMD GPUs of this node through the amdsmi package that comes with ROCm, by Omnistat's names."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from perfproof.training.collectors.nvidia import throttling
from perfproof.training.collectors.reading import AbsentError, Reading, card, readings

# Groups of bits of the kernel's indep_throttle_status (drivers/gpu/drm/amd/include).
THROTTLE_BITS = {
    "power_cap": 0x000000000000FFFF,
    "current": 0x00000000FFFF0000,
    "thermal": 0x00FFFFFF00000000,
    "other": 0xFF00000000000000,
}
# Newer GPUs count the time for which each cause held the clocks down instead.
_RESIDENCY = {
    "power_cap": ("ppt_residency_acc",),
    "thermal": ("socket_thm_residency_acc", "vr_thm_residency_acc", "hbm_thm_residency_acc"),
    "other": ("prochot_residency_acc",),
}
# What stands for "not known" in fields of 16, 32 and 64 bits.
_UNKNOWN = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})


class Amd:
    """The GPUs of this node; raises AbsentError where amdsmi or the driver is missing."""

    def __init__(self) -> None:
        """Open the library."""
        try:
            self._smi: Any = importlib.import_module("amdsmi")
            self._smi.amdsmi_init()
            self._devices: list[Any] = list(self._smi.amdsmi_get_processor_handles())
        except ImportError:
            raise AbsentError("amdsmi: not importable") from None
        # The library has a family of its own errors; what it raises without a driver varies.
        except Exception as fault:
            raise AbsentError(f"amdsmi: {type(fault).__name__}: {fault}") from None
        if not self._devices:
            raise AbsentError("amdsmi: no GPU")
        self._held: dict[tuple[int, str], int] = {}

    def read(self) -> Iterator[Reading]:
        """One reading."""
        yield "rocm_num_gpus", (), float(len(self._devices))
        for number, device in enumerate(self._devices):
            metrics = self._asked("amdsmi_get_gpu_metrics_info", device) or {}
            yield from self._device(number, device, metrics)
            yield from self._throttled(number, metrics)

    def _device(self, number: int, device: Any, metrics: Mapping[str, Any]) -> Iterator[Reading]:
        memory = self._smi.AmdSmiMemoryType.VRAM
        total = known(self._asked("amdsmi_get_gpu_memory_total", device, memory))
        used = known(self._asked("amdsmi_get_gpu_memory_usage", device, memory))
        yield from readings(
            card(number),
            rocm_utilization_percentage=known(metrics.get("average_gfx_activity")),
            rocm_vram_busy_percentage=known(metrics.get("average_umc_activity")),
            rocm_vram_total_bytes=total,
            perfproof_vram_used_bytes=used,
            rocm_vram_used_percentage=100 * used / total if used is not None and total else None,
            rocm_average_socket_power_watts=first(
                metrics, "average_socket_power", "current_socket_power"
            ),
            rocm_energy_joules=self._energy_j(device),
            rocm_sclk_clock_mhz=first(metrics, "average_gfxclk_frequency", "current_gfxclk"),
            rocm_mclk_clock_mhz=first(metrics, "average_uclk_frequency", "current_uclk"),
            rocm_xgmi_total_read_kilobytes=summed(metrics.get("xgmi_read_data_acc")),
            rocm_xgmi_total_write_kilobytes=summed(metrics.get("xgmi_write_data_acc")),
        )
        hottest = first(metrics, "temperature_hotspot", "temperature_edge")
        yield from readings(card(number, location="hotspot"), rocm_temperature_celsius=hottest)
        memory_c = known(metrics.get("temperature_mem"))
        yield from readings(
            card(number, location="memory"), rocm_temperature_memory_celsius=memory_c
        )

    def _energy_j(self, device: Any) -> float | None:
        found = self._asked("amdsmi_get_energy_count", device) or {}
        count, micro_j = known(found.get("energy_accumulator")), found.get("counter_resolution")
        return count * micro_j / 1e6 if count is not None and micro_j else None

    def _throttled(self, number: int, metrics: Mapping[str, Any]) -> Iterator[Reading]:
        bits = known(metrics.get("indep_throttle_status"))
        if bits is not None:
            yield from throttling(number, int(bits), THROTTLE_BITS)
            return
        for reason, names in _RESIDENCY.items():
            counts = [value for name in names if (value := known(metrics.get(name))) is not None]
            if not counts:
                continue
            total, key = int(sum(counts)), (number, reason)
            if key in self._held:
                labels = card(number, reason=reason)
                yield "perfproof_throttled", labels, float(total > self._held[key])
            self._held[key] = total

    def _asked(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._smi, name)(*arguments)
        except (AttributeError, self._smi.AmdSmiException):
            return None


def known(value: Any) -> float | None:
    """A number that the driver knows: not `N/A`, and not the largest of its width."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value in _UNKNOWN:
        return None
    return value


def first(metrics: Mapping[str, Any], *names: str) -> float | None:
    """The first of the fields that this GPU fills: which one it is differs between families."""
    found = (known(metrics.get(name)) for name in names)
    return next((value for value in found if value), None)


def summed(values: Any) -> float | None:
    """The sum over the links that exist."""
    links = [value for item in values or () if (value := known(item)) is not None]
    return float(sum(links)) if links else None
