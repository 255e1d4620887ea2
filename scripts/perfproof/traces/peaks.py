"""Peaks of the GPU that a trace is of, matched by the device's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import read_yaml, validate
from perfproof.schema.gpus import GpuPeaks

SHIPPED = Path(__file__).resolve().parents[3] / "config" / "gpus"


@cache
def load_peaks(folder: Path = SHIPPED) -> tuple[GpuPeaks, ...]:
    """All `*.yaml` of a folder, by name."""
    found = []
    for path in sorted(folder.glob("*.yaml")):
        peaks = validate(read_yaml(path), GpuPeaks, path)
        if peaks.gpu != path.stem:
            raise InputError(path, f"'{peaks.gpu}'", f"'{path.stem}', the file's name", "gpu")
        found.append(peaks)
    return tuple(found)


def peaks_of(device_names: Sequence[str], known: Sequence[GpuPeaks]) -> GpuPeaks | None:
    """The entry whose pattern matches the whole of the one name that all devices share.

    None where the trace names none or several, or where no entry or more than one matches.
    """
    if len(device_names) != 1:
        return None
    found = [
        peaks
        for peaks in known
        if any(re.fullmatch(name, device_names[0], re.IGNORECASE) for name in peaks.names)
    ]
    return found[0] if len(found) == 1 else None
