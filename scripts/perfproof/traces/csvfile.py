"""Tables as CSV: UTF-8, `\\n`, floats in full precision, an empty cell for what is not known.

Names stand as they are in the trace, quoted where they hold a comma, a quote or a line break. Only
texts of more than `LONGEST_TEXT` characters are cut: readers have limits.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.files import digest_bytes, write_text
from perfproof.schema.traces import Table

Cell = str | int | float | None
Row = Sequence[Cell]

LONGEST_TEXT = 8192  # kernels' names are under 6000; Python's csv reader stops at 131072
_KEPT_TEXT = 4096


@dataclass(frozen=True)
class Rows:
    """A table in memory: column names, and rows of plain Python values."""

    columns: tuple[str, ...]
    rows: Sequence[Row]

    def text(self) -> str:
        """The CSV text."""
        lines = _Lines()
        # With this terminator the writer quotes both `\r` and `\n`.
        writer = csv.writer(lines, lineterminator="\r\n")
        writer.writerow(self.columns)
        writer.writerows([_cut(cell) for cell in row] for row in self.rows)
        return "".join(lines)


class _Lines(list[str]):
    """Collects lines, ended by `\\n` only."""

    def write(self, line: str) -> None:
        self.append(line[:-2] + "\n")


def _cut(cell: Cell) -> Cell:
    """A long text cut, with its length and digest so that different texts stay different."""
    if not isinstance(cell, str) or len(cell) <= LONGEST_TEXT:
        return cell
    digest = digest_bytes(cell.encode("utf-8", "backslashreplace"))[:16]
    return f"{cell[:_KEPT_TEXT]}… [cut; {len(cell)} characters, blake3 {digest}]"


def largest_first(rows: Sequence[Row], value: int, *names: int) -> list[Row]:
    """Rows by falling number in column `value`, ties by the text of the `names` columns."""
    return sorted(rows, key=lambda row: (-float(row[value] or 0), *(str(row[n]) for n in names)))


def write_table(out: Path, file: str, table: Rows) -> Table:
    """Write `table` to `out`/`file`; returns its record."""
    return write_csv(out, file, table.text(), len(table.rows))


def write_csv(out: Path, file: str, text: str, rows: int) -> Table:
    """Write a table's `text`, which has so many `rows`, to `out`/`file`; returns its record."""
    write_text(out / file, text)
    return Table(file=file, rows=rows, blake3=digest_bytes(text.encode()))


def us(nanoseconds: int) -> float:
    """Microseconds, as tables show them."""
    return nanoseconds / 1000
