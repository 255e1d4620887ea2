"""Setting keys of a trainer's own configuration: a key that is not there is a misspelt key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfproof.core.errors import InputError, nearest

NEW = "+"


def put(document: dict[str, Any], dotted: str, value: Any, where: Path | str) -> None:
    """Set a key that must exist, because the trainer reads it. `where` is the document's file."""
    parent, leaf = _parent(document, dotted, where)
    if leaf not in parent:
        raise InputError(where, "no such key", nearest(leaf, parent), dotted)
    parent[leaf] = value


def add(document: dict[str, Any], dotted: str, value: Any, where: Path | str) -> None:
    """Set a key that the trainer reads with a default, so that it may be missing."""
    parent, leaf = _parent(document, dotted, where)
    parent[leaf] = value


def get(document: dict[str, Any], dotted: str, where: Path | str) -> Any:
    """The value of a key that must exist."""
    parent, leaf = _parent(document, dotted, where)
    if leaf not in parent:
        raise InputError(where, "no such key", nearest(leaf, parent), dotted)
    return parent[leaf]


def merge(
    document: dict[str, Any],
    changes: Mapping[str, Any],
    where: Path | str,
    *,
    source: str,
    owned: Mapping[str, str],
    whole: Collection[str] = (),
) -> None:
    """Set the keys of `changes`, nested or dotted, in `document`.

    A key that the document lacks needs a `+` before it. `owned` maps keys that follow from the
    recipe to the recipe's key; mappings named in `whole` are replaced, not entered. `source` says
    where `changes` stand, for messages.
    """
    for dotted, value in _leaves(changes, "", whole):
        plain = dotted.replace(NEW, "")
        if plain in owned:
            raise InputError(source, f"sets '{plain}'", f"'{owned[plain]}' to be set instead")
        if plain != dotted:
            add(document, plain, value, where)
        else:
            put(document, plain, value, where)


def _leaves(
    changes: Mapping[str, Any], before: str, whole: Collection[str]
) -> Iterator[tuple[str, Any]]:
    for key, value in changes.items():
        dotted = f"{before}{key}"
        if isinstance(value, Mapping) and dotted not in whole:
            yield from _leaves(value, f"{dotted}.", whole)
        else:
            yield dotted, value


def _parent(document: dict[str, Any], dotted: str, where: Path | str) -> tuple[dict[str, Any], str]:
    *parents, leaf = dotted.split(".")
    here: Any = document
    for depth, name in enumerate(parents, 1):
        if name not in here:
            hint = nearest(name, here)
            raise InputError(where, "no such key", hint, ".".join(parents[:depth]))
        here = here[name]
        if not isinstance(here, dict):
            found = f"found {here!r}"[:80]
            raise InputError(where, found, "a mapping", ".".join(parents[:depth]))
    return here, leaf
