"""Errors about input: each names the file (and key), what was found and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class InputError(ValueError):
    """Input that cannot be used. The message is one line and complete on its own."""

    def __init__(self, where: Path | str, found: str, expected: str, key: str = "") -> None:
        """Say `where` (a path), which `key` inside it, what was `found` and what was `expected`."""
        place = f"{where}: {key}" if key else f"{where}"
        super().__init__(f"{place}: {found}; expected {expected}")
        self.where, self.key, self.found, self.expected = str(where), key, found, expected


def nearest(name: str, valid: Iterable[str]) -> str:
    """What a misspelt `name` probably means: the nearest valid one, or all when none is near."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"'{close[0]}' (the nearest valid one)" if close else "one of: " + ", ".join(names)


def unknown(where: Path | str, kind: str, name: str, valid: Iterable[str]) -> InputError:
    """The error for a `name` that is not among the `valid` ones of its `kind`."""
    return InputError(where, f"unknown {kind} '{name}'", nearest(name, valid))
