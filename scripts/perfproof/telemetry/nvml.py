"""The NVML sampler's table as time series with Omnistat's names."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfproof.telemetry.names import PRESENT, THROTTLED, USED_BYTES
from perfproof.telemetry.read import Telemetry
from perfproof.telemetry.store import Series, Store, Times, Values, tidy

# Column: metric, and how many of the column's unit are one of the metric's.
COLUMNS: dict[str, tuple[str, float]] = {
    "util_gpu_pct": ("rocm_utilization_percentage", 1),
    "util_mem_pct": ("rocm_vram_busy_percentage", 1),
    "mem_used_mib": (USED_BYTES, 2**-20),
    "power_w": ("rocm_average_socket_power_watts", 1),
    "sm_clock_mhz": ("rocm_sclk_clock_mhz", 1),
    "temp_c": ("rocm_temperature_celsius", 1),
    "energy_mj": ("rocm_energy_joules", 1000),
}
# Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML API reference, nvmlClocksEventReasons).
THROTTLE_BITS: dict[str, int] = {
    "power_cap": 0x04,
    "hardware_slowdown": 0x08,
    "thermal": 0x20 | 0x40,
    "power_brake": 0x80,
}


def from_table(telemetry: Telemetry) -> Store:
    """The same samples by metric and card; times to the millisecond."""
    store = Store(problems=list(telemetry.problems))
    for gpu, rows in telemetry.samples.groupby("gpu", sort=True):
        labels = {"card": str(gpu)}
        times = np.rint(rows["unix_ts"].to_numpy() * 1000).astype(np.int64)
        _add(store, PRESENT, labels, times, np.ones(len(times)))
        _add_columns(store, labels, times, rows)
    if store.duplicates:
        store.problems.append(f"{store.duplicates} cells of a time that was there; last kept")
    return store


def _add_columns(store: Store, labels: dict[str, str], times: Times, rows: pd.DataFrame) -> None:
    for column, (name, unit) in COLUMNS.items():
        if column in rows.columns:
            _add(store, name, labels, times, rows[column].to_numpy(dtype=np.float64) / unit)
    if "throttle_reasons" in rows.columns:
        reasons = rows["throttle_reasons"].to_numpy(dtype=np.float64)
        add_throttling(store, labels, times, reasons)


def add_throttling(store: Store, labels: dict[str, str], times: Times, mask: Values) -> None:
    """One series of 0 and 1 a reason, from the bit mask of all of them."""
    known = np.isfinite(mask)
    bits = mask[known].astype(np.int64)
    for reason, wanted in THROTTLE_BITS.items():
        held = (np.bitwise_and(bits, wanted) != 0).astype(np.float64)
        _add(store, THROTTLED, {**labels, "reason": reason}, times[known], held)


def _add(store: Store, name: str, labels: dict[str, str], times: Times, values: Values) -> None:
    clean = tidy(times, values)
    store.samples += len(times)
    store.duplicates += clean.duplicates
    store.add(name, Series(labels, clean.times_ms, clean.values))
