"""The file a sampler appends to, one line a tick: a killed sampler loses the tick it was writing.

A line with `series` names the columns; the lines after it are `[time_ms, value, …]`. Standard
library only: what reads it again is elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from perfproof.training.collectors.reading import Labels, Reading

# A database that the samples may pass through keeps fifteen digits: so many, no more, are written.
_DIGITS, _SIGNIFICANT = 6, 15


class SampleFile:
    """Appends ticks to `path`; `common` are labels of every series."""

    def __init__(self, path: Path, common: dict[str, str]) -> None:
        """Open the file, after whatever it holds."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("ab", buffering=0)
        self._common = common
        self._columns: list[tuple[str, Labels]] = []
        self.ticks = 0

    def append(self, time_ms: int, readings: Sequence[Reading]) -> None:
        """One tick, in one write."""
        columns = [(name, labels) for name, labels, _ in readings]
        header = "" if columns == self._columns else self._header(columns)
        row = [time_ms, *(_rounded(value) for _, _, value in readings)]
        self._stream.write(f"{header}{json.dumps(row, separators=(',', ':'))}\n".encode())
        self.ticks += 1

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _header(self, columns: list[tuple[str, Labels]]) -> str:
        self._columns = columns
        named = [{"__name__": name, **dict(labels), **self._common} for name, labels in columns]
        return json.dumps({"series": named}, separators=(",", ":")) + "\n"


def _rounded(value: float) -> float:
    """Six decimals, fewer of large numbers."""
    if isinstance(value, int) or value.is_integer():
        return value
    whole = len(str(int(abs(value))))
    return round(value, max(0, min(_DIGITS, _SIGNIFICANT - whole)))
