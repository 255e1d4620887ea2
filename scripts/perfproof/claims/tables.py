"""The analyst's view of the tables: rows of one rank's CSV files, read when first needed."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.schema.traces import RankTrace, Table

Row = dict[str, str]


@dataclass
class RankTables:
    """Tables of one rank. `root` is the analysis directory that table paths start from."""

    root: Path
    rank: RankTrace
    cross_rank: dict[str, Table] = field(default_factory=dict)
    _cache: dict[str, list[Row]] = field(default_factory=dict)

    def file(self, name: str) -> str:
        """The table's path relative to the analysis directory."""
        return self._table(name).file

    def rows(self, name: str) -> list[Row]:
        """Rows of a table, values as text. Raises InputError where it is missing or damaged."""
        if name not in self._cache:
            self._cache[name] = _read(self.root / self._table(name).file)
        return self._cache[name]

    def row(self, name: str, key: str, value: str) -> Row:
        """The row whose column `key` is `value`. Raises InputError where there is none."""
        for row in self.rows(name):
            if row.get(key) == value:
                return row
        raise InputError(self.root / self.file(name), f"no row {key}={value}", "that row")

    def number(self, name: str, row: Row, column: str) -> float:
        """A cell as a number. Raises InputError where it is none."""
        try:
            return float(row[column])
        except (KeyError, ValueError):
            found = f"column '{column}' holds {row.get(column)!r}"
            raise InputError(self.root / self.file(name), found, "a number") from None

    def _table(self, name: str) -> Table:
        table = self.rank.tables.get(name) or self.cross_rank.get(name)
        if table is None:
            raise InputError(self.rank.file, f"no table '{name}'", "one from the trace stage")
        return table


def _read(path: Path) -> list[Row]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except FileNotFoundError:
        raise InputError(path, "no such file", "a table of the trace stage") from None
    except (UnicodeDecodeError, csv.Error) as fault:
        raise InputError(path, str(fault), "a CSV table") from None
