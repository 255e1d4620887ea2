"""Tables as CSV: UTF-8, `\\n`, floats in full precision, an empty cell for what is not known."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.files import digest_bytes, write_text
from perfproof.schema.traces import Table

Cell = str | int | float | None
Row = Sequence[Cell]


@dataclass(frozen=True)
class Rows:
    """A table in memory: column names, and rows of plain Python values."""

    columns: tuple[str, ...]
    rows: Sequence[Row]

    def text(self) -> str:
        """The CSV text."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return stream.getvalue()


def largest_first(rows: Sequence[Row], value: int, *names: int) -> list[Row]:
    """Rows by falling number in column `value`, ties by the text of the `names` columns."""
    return sorted(rows, key=lambda row: (-float(row[value] or 0), *(str(row[n]) for n in names)))


def write_table(out: Path, file: str, table: Rows) -> Table:
    """Write `table` to `out`/`file`; returns its record."""
    text = table.text()
    write_text(out / file, text)
    return Table(file=file, rows=len(table.rows), blake3=digest_bytes(text.encode()))


def us(nanoseconds: int) -> float:
    """Microseconds, as tables show them."""
    return nanoseconds / 1000
