"""Sums by key over columns, without a table library in the hot path."""

from __future__ import annotations

import numpy as np

from perfproof.traces.intervals import Ints


class Groups:
    """Rows that share all keys. Groups are numbered in order of the keys."""

    def __init__(self, *keys: Ints) -> None:
        """`keys`: columns of equal length; the first is the most significant."""
        size = keys[0].size
        self.order: Ints = np.lexsort((np.arange(size), *reversed(keys)))
        sorted_keys = [key[self.order] for key in keys]
        changes = np.zeros(size, np.bool_)
        changes[:1] = True
        for key in sorted_keys:
            changes[1:] |= key[1:] != key[:-1]
        self.begin: Ints = np.flatnonzero(changes)
        self.keys = [key[self.begin] for key in sorted_keys]
        self.of_row = np.empty(size, np.int64)
        self.of_row[self.order] = np.cumsum(changes) - 1

    def __len__(self) -> int:
        return int(self.begin.size)

    @property
    def count(self) -> Ints:
        """Rows in each group."""
        return np.diff(np.append(self.begin, self.order.size))

    @property
    def first(self) -> Ints:
        """Index of each group's first row."""
        return self.order[self.begin]

    def sum(self, values: Ints) -> Ints:
        """Sum of `values` by group."""
        return self._reduce(np.add, values)

    def min(self, values: Ints) -> Ints:
        """Least of `values` by group."""
        return self._reduce(np.minimum, values)

    def max(self, values: Ints) -> Ints:
        """Greatest of `values` by group."""
        return self._reduce(np.maximum, values)

    def _reduce(self, function: np.ufunc, values: Ints) -> Ints:
        if not self.begin.size:
            return np.empty(0, np.int64)
        result: Ints = function.reduceat(values[self.order], self.begin)
        return result
