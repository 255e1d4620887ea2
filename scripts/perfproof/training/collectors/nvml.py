"""NVIDIA's management library through its C interface: no package is needed, only the driver."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_double, c_int, c_longlong, c_uint, c_ulonglong
from typing import Any

from perfproof.training.collectors.reading import AbsentError

LIBRARY = "libnvidia-ml.so.1"
SM_CLOCK, MEMORY_CLOCK = 1, 2
MEMORY_TEMPERATURE, NVLINK_SENT, NVLINK_RECEIVED = 82, 138, 139
_ALL_LINKS = 0xFFFFFFFF
_TEXT = 96
_VALUES: dict[int, str] = {0: "d", 1: "ui", 2: "ul", 3: "ull", 4: "sll", 5: "si"}


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class _Memory(ctypes.Structure):
    """The second version of the structure: used without what the driver reserves."""

    _fields_ = (
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    )


class _Value(ctypes.Union):
    _fields_ = (
        ("d", c_double),
        ("ui", c_uint),
        ("ul", ctypes.c_ulong),
        ("ull", c_ulonglong),
        ("sll", c_longlong),
        ("si", c_int),
    )


class _Field(ctypes.Structure):
    _fields_ = (
        ("field", c_uint),
        ("scope", c_uint),
        ("time", c_longlong),
        ("latency", c_longlong),
        ("kind", c_int),
        ("status", c_int),
        ("value", _Value),
    )


class Device:
    """One GPU. Each question is answered with a number, or None where the GPU does not say."""

    def __init__(self, library: Any, handle: ctypes.c_void_p) -> None:
        """`handle` is the library's own."""
        self._library, self._handle = library, handle

    def utilization(self) -> tuple[int | None, int | None]:
        """Shares of time in which a kernel ran, and in which memory was used, percent."""
        found = _Utilization()
        if not self._asked("nvmlDeviceGetUtilizationRates", byref(found)):
            return None, None
        return found.gpu, found.memory

    def memory_bytes(self) -> tuple[int | None, int | None]:
        """Used and total."""
        found = _Memory(version=ctypes.sizeof(_Memory) | 2 << 24)
        if not self._asked("nvmlDeviceGetMemoryInfo_v2", byref(found)):
            return None, None
        return found.used, found.total

    def power_mw(self) -> int | None:
        """Power, milliwatt."""
        return self._number("nvmlDeviceGetPowerUsage", c_uint)

    def power_limit_mw(self) -> int | None:
        """The limit in force, milliwatt."""
        return self._number("nvmlDeviceGetEnforcedPowerLimit", c_uint)

    def energy_mj(self) -> int | None:
        """Energy since the driver was loaded, millijoule."""
        return self._number("nvmlDeviceGetTotalEnergyConsumption", c_ulonglong)

    def clock_mhz(self, kind: int) -> int | None:
        """A clock, MHz."""
        return self._number("nvmlDeviceGetClockInfo", c_uint, c_int(kind))

    def temperature_c(self) -> int | None:
        """Temperature of the chip."""
        return self._number("nvmlDeviceGetTemperature", c_uint, c_int(0))

    def throttle_bits(self) -> int | None:
        """What holds the clocks down now, a bit each."""
        # The name changed with driver 535; later ones know both.
        older = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", c_ulonglong)
        if older is not None:
            return older
        return self._number("nvmlDeviceGetCurrentClocksEventReasons", c_ulonglong)

    def field(self, number: int, *, all_links: bool = False) -> float | None:
        """A field by its number."""
        asked = _Field(field=number, scope=_ALL_LINKS if all_links else 0)
        if not self._asked("nvmlDeviceGetFieldValues", c_int(1), byref(asked)) or asked.status:
            return None
        name = _VALUES.get(asked.kind)
        return float(getattr(asked.value, name)) if name else None

    def name(self) -> str:
        """The product's name."""
        text = (c_char * _TEXT)()
        self._asked("nvmlDeviceGetName", text, c_uint(_TEXT))
        return text.value.decode(errors="replace")

    def uuid(self) -> str:
        """The GPU's own number, `GPU-…`."""
        text = (c_char * _TEXT)()
        self._asked("nvmlDeviceGetUUID", text, c_uint(_TEXT))
        return text.value.decode(errors="replace")

    def _number(self, name: str, kind: Any, *before: Any) -> int | None:
        found = kind()
        return int(found.value) if self._asked(name, *before, byref(found)) else None

    def _asked(self, name: str, *arguments: Any) -> bool:
        # An older driver may lack a function.
        function = getattr(self._library, name, None)
        return function is not None and function(self._handle, *arguments) == 0


def devices(library: str = LIBRARY) -> list[Device]:
    """All GPUs of this node in the library's order. Raises AbsentError where there are none."""
    try:
        loaded = ctypes.CDLL(library)
    except OSError as fault:
        raise AbsentError(f"{library}: {fault}") from None
    status = loaded.nvmlInit_v2()
    if status:
        raise AbsentError(f"{library}: nvmlInit: error {status}")
    count = c_uint()
    loaded.nvmlDeviceGetCount_v2(byref(count))
    found = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if loaded.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(handle)) == 0:
            found.append(Device(loaded, handle))
    if not found:
        raise AbsentError(f"{library}: no GPU")
    return found


def driver_version(library: str = LIBRARY) -> str:
    """The driver's version, empty where it does not say."""
    text = (c_char * _TEXT)()
    ctypes.CDLL(library).nvmlSystemGetDriverVersion(text, c_uint(_TEXT))
    return text.value.decode(errors="replace")
