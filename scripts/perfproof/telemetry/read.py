"""Read the NVML sampler's `telemetry.csv`: one row a GPU a sample, unix time in seconds."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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
_LARGEST = {"util_gpu_pct": 100, "util_mem_pct": 100, "gpu": 2**31, "throttle_reasons": 2**53}
_WHOLE = ("gpu", "throttle_reasons")


@dataclass(frozen=True)
class Telemetry:
    """Samples sorted by GPU and time; a column that the file lacks is absent."""

    samples: pd.DataFrame
    problems: tuple[str, ...]


def read_telemetry(path: Path) -> Telemetry:
    """Parse the file, gzip or plain. What is no number, or none that can be, becomes NaN.

    Such cells, and rows with another number of fields than the header, are told in `problems`.
    Raises InputError where the file is no such table at all.
    """
    raw, problems = _load(path)
    columns = [column for column in VALUES if column in raw.columns]
    numbers = pd.DataFrame({name: _numbers(raw[name]) for name in (*KEYS, *columns)})
    usable = numbers[numbers[list(KEYS)].notna().all(axis=1)]
    if usable.empty:
        raise InputError(path, "; ".join(["no row with unix_ts and gpu", *problems]), _EXPECTED)
    samples = usable.astype({"gpu": int}).sort_values(["gpu", "unix_ts"], kind="stable")
    problems += _complaints(numbers, usable, columns)
    return Telemetry(samples.reset_index(drop=True), tuple(problems))


def _numbers(cells: pd.Series[str]) -> pd.Series[float]:
    """Finite numbers that the column can have; NaN for anything else."""
    name = str(cells.name)
    values = pd.to_numeric(cells, errors="coerce").astype(float)
    good = np.isfinite(values) & (values <= _LARGEST.get(name, np.inf))
    if name != "temp_c":
        good &= values >= 0
    if name in _WHOLE:
        good &= values % 1 == 0
    return values.where(good)


def _load(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Cells as text by column, and what became of rows with other fields than the header."""
    try:
        rows = list(_rows(path))
    except FileNotFoundError:
        raise InputError(path, "no such file", _EXPECTED) from None
    except (UnicodeDecodeError, OSError, EOFError, zlib.error, csv.Error) as fault:
        found = " ".join(str(fault).split()) or type(fault).__name__
        raise InputError(path, found, _EXPECTED) from None
    header = rows[0][1] if rows else []
    _check_header(header, path)
    good = [cells for _, cells in rows[1:] if len(cells) == len(header)]
    bad = [(line, len(cells)) for line, cells in rows[1:] if len(cells) != len(header)]
    return pd.DataFrame(good, columns=header, dtype=str), _misfits(bad, len(header))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row that is not blank."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    opened = gzip.open if packed else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        for cells in reader:
            if cells:
                yield reader.line_num, cells


def _check_header(header: list[str], path: Path) -> None:
    if not header:
        raise InputError(path, "an empty file", _EXPECTED)
    if missing := [key for key in KEYS if key not in header]:
        raise InputError(path, f"no column {' or '.join(missing)}", _EXPECTED)
    if twice := [name for name, count in Counter(header).items() if count > 1]:
        raise InputError(path, f"column {twice[0]} twice", _EXPECTED)


def _misfits(bad: list[tuple[int, int]], expected: int) -> list[str]:
    """Rows that do not fit the header: which cell is which value cannot be known."""
    if not bad:
        return []
    line, fields = bad[0]
    more = f" (and {len(bad) - 1} more rows)" if len(bad) > 1 else ""
    return [f"line {line}: {fields} fields, not used; expected {expected}{more}"]


def _complaints(numbers: pd.DataFrame, usable: pd.DataFrame, columns: list[str]) -> list[str]:
    lost = len(numbers) - len(usable)
    found = [f"{lost} rows without a time or GPU number; expected both"] if lost else []
    for column in columns:
        bad = int(usable[column].isna().sum())
        if bad:
            found.append(f"{bad} of {len(usable)} cells of {column} are no numbers; left out")
    return found
