"""NVIDIA GPUs of this node, under the names that Omnistat gives to AMD's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perfproof.training.collectors import nvml
from perfproof.training.collectors.reading import AbsentError, Labels, Reading, card, readings

# Bits of nvmlClocksEventReasons. Idle and clocks that somebody set are no throttling, but they
# explain a low clock.
THROTTLE_BITS = {
    "power_cap": 0x04,
    "hardware_slowdown": 0x08,
    "thermal": 0x20 | 0x40,
    "power_brake": 0x80,
    "idle": 0x01,
    "set_clocks": 0x02,
}
# NVLink's counters are in KiB, the series in units of 1000 B.
_KIB = 1.024


class Nvidia:
    """The GPUs that the run may use; raises AbsentError where there is no NVIDIA driver."""

    def __init__(self, env: Mapping[str, str], library: str = nvml.LIBRARY) -> None:
        """`env` may say which GPUs are the job's."""
        found = nvml.devices(library)
        numbers = mine(env.get("CUDA_VISIBLE_DEVICES"), [device.uuid() for device in found])
        self._devices = {number: found[number] for number in numbers}
        if not self._devices:
            raise AbsentError("CUDA_VISIBLE_DEVICES leaves no GPU")
        driver = nvml.driver_version(library)
        self._constant: list[Reading] = [("rocm_num_gpus", (), float(len(self._devices)))]
        for number, device in self._devices.items():
            labels = card(number, driver_ver=driver, type=device.name())
            self._constant.append(("rocm_version_info", labels, 1.0))

    def read(self) -> Iterator[Reading]:
        """One reading."""
        yield from self._constant
        for number, device in self._devices.items():
            yield from _device(device, number)


def mine(visible: str | None, uuids: Sequence[str]) -> list[int]:
    """Numbers of the GPUs that `CUDA_VISIBLE_DEVICES` names, by number or UUID; unset: all."""
    if visible is None:
        return list(range(len(uuids)))
    found = []
    for word in filter(None, (part.strip() for part in visible.split(","))):
        if word.isdecimal():
            found += [int(word)] if int(word) < len(uuids) else []
        else:
            found += [n for n, uuid in enumerate(uuids) if uuid.startswith(word)]
    return sorted(set(found))


def _device(device: nvml.Device, number: int) -> Iterator[Reading]:
    plain = card(number)
    busy, memory_busy = device.utilization()
    used, total = device.memory_bytes()
    yield from readings(
        plain,
        rocm_utilization_percentage=busy,
        rocm_vram_busy_percentage=memory_busy,
        rocm_vram_total_bytes=total,
        perfproof_vram_used_bytes=used,
        rocm_vram_used_percentage=100 * used / total if used is not None and total else None,
        rocm_average_socket_power_watts=_scaled(device.power_mw()),
        rocm_power_cap_watts=_scaled(device.power_limit_mw()),
        rocm_energy_joules=_scaled(device.energy_mj()),
        rocm_sclk_clock_mhz=device.clock_mhz(nvml.SM_CLOCK),
        rocm_mclk_clock_mhz=device.clock_mhz(nvml.MEMORY_CLOCK),
        rocm_xgmi_total_read_kilobytes=_kilobytes(device, nvml.NVLINK_RECEIVED),
        rocm_xgmi_total_write_kilobytes=_kilobytes(device, nvml.NVLINK_SENT),
    )
    yield from readings(
        card(number, location="gpu"), rocm_temperature_celsius=device.temperature_c()
    )
    yield from readings(
        card(number, location="memory"),
        rocm_temperature_memory_celsius=_hot(device.field(nvml.MEMORY_TEMPERATURE)),
    )
    yield from throttling(number, device.throttle_bits(), THROTTLE_BITS)


def throttling(number: int, bits: int | None, names: Mapping[str, int]) -> Iterator[Reading]:
    """1 for each reason that holds the clocks down now, 0 for the others."""
    if bits is None:
        return
    for reason, mask in names.items():
        labels: Labels = card(number, reason=reason)
        yield "perfproof_throttled", labels, float(bits & mask != 0)


def _kilobytes(device: nvml.Device, field: int) -> float | None:
    sent = device.field(field, all_links=True)
    return None if sent is None else sent * _KIB


def _scaled(thousandths: int | None) -> float | None:
    return None if thousandths is None else thousandths / 1000


def _hot(celsius: float | None) -> float | None:
    """GPUs without the sensor say 0."""
    return celsius or None
