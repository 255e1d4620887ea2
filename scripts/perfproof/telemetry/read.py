"""Read the NVML sampler's `telemetry.csv`: one row a GPU a sample, unix time in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from perfproof.core.errors import InputError

KEYS = ("unix_ts", "gpu")
VALUES = (
    "util_gpu_pct",
    "util_mem_pct",
    "mem_used_mib",
    "power_w",
    "sm_clock_mhz",
    "temp_c",
    "energy_mj",
    "throttle_reasons",
)
_EXPECTED = "a CSV with columns unix_ts, gpu and NVML values"


@dataclass(frozen=True)
class Telemetry:
    """Samples sorted by GPU and time; a column that the file lacks is absent."""

    samples: pd.DataFrame
    problems: tuple[str, ...]


def read_telemetry(path: Path) -> Telemetry:
    """Parse the file. Cells that are no number become NaN and are counted in `problems`.

    Raises InputError where the file is no such table at all.
    """
    raw = _load(path)
    columns = [column for column in VALUES if column in raw.columns]
    numbers = raw[[*KEYS, *columns]].apply(pd.to_numeric, errors="coerce")
    usable = numbers[numbers[list(KEYS)].notna().all(axis=1)]
    if usable.empty:
        raise InputError(path, "no row with unix_ts and gpu", _EXPECTED)
    samples = usable.astype({"gpu": int}).sort_values(["gpu", "unix_ts"], kind="stable")
    return Telemetry(samples.reset_index(drop=True), tuple(_complaints(numbers, usable, columns)))


def _load(path: Path) -> pd.DataFrame:
    try:
        raw = pd.read_csv(path, dtype=str, keep_default_na=False, on_bad_lines="skip")
    except FileNotFoundError:
        raise InputError(path, "no such file", _EXPECTED) from None
    except (UnicodeDecodeError, OSError, EOFError, pd.errors.ParserError, ValueError) as fault:
        found = " ".join(str(fault).split()) or type(fault).__name__
        raise InputError(path, found, _EXPECTED) from None
    missing = [key for key in KEYS if key not in raw.columns]
    if missing:
        raise InputError(path, f"no column {' or '.join(missing)}", _EXPECTED)
    return raw


def _complaints(numbers: pd.DataFrame, usable: pd.DataFrame, columns: list[str]) -> list[str]:
    lost = len(numbers) - len(usable)
    found = [f"{lost} rows without a time or GPU number; expected both"] if lost else []
    for column in columns:
        bad = int(usable[column].isna().sum())
        if bad:
            found.append(f"{bad} of {len(usable)} cells of {column} are no numbers; left out")
    return found
