"""Dotted recipe keys (`training.batch_size`): which exist, and setting them with a type check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perfproof.core.errors import InputError, unknown
from perfproof.schema.base import Strict
from perfproof.schema.config import Parallel, Profile, Training

# Sections whose keys are free: variables of the environment, keys of a foreign configuration.
_FREE = ("env", "upstream")

Sections = Mapping[str, type[Strict]]


def sections(architecture: type[Strict] | None, data: type[Strict] | None) -> Sections:
    """The typed sections of a recipe; a model without an embedded relative has three of them."""
    found: dict[str, type[Strict]] = {
        "training": Training,
        "profile": Profile,
        "parallel": Parallel,
    }
    return found | {
        name: kind for name, kind in (("architecture", architecture), ("data", data)) if kind
    }


def settable(known: Sections) -> list[str]:
    """Every typed dotted key, sorted."""
    return sorted(f"{name}.{key}" for name, kind in known.items() for key in kind.model_fields)


def set_key(
    recipe: dict[str, Any], dotted: str, value: Any, known: Sections, where: Path | str
) -> None:
    """Set one key of a dumped recipe in place. `where` is the file that asks for it."""
    section, _, rest = dotted.partition(".")
    if section in _FREE and rest:
        return _set_free(recipe[section], section, rest, value, where)
    if section not in known or rest not in known[section].model_fields:
        raise unknown(where, "recipe key", dotted, settable(known))
    recipe[section][rest] = _checked(known[section], rest, value, dotted, where)
    return None


def _checked(kind: type[Strict], name: str, value: Any, dotted: str, where: Path | str) -> Any:
    """The value, held to the field's type without conversion (no `"8"` for 8, no `true` for 1)."""
    probe = kind.model_construct()
    try:
        kind.__pydantic_validator__.validate_assignment(probe, name, value, strict=True)
    except ValidationError as fault:
        message = fault.errors()[0]["msg"]
        raise InputError(where, f"found {value!r}", message, dotted) from None
    return value


def _set_free(
    target: dict[str, Any], section: str, rest: str, value: Any, where: Path | str
) -> None:
    if section == "env":
        if not isinstance(value, str):
            raise InputError(where, f"found {value!r}", "a string (quote it)", f"env.{rest}")
        target[rest] = value
        return
    *parents, leaf = rest.split(".")
    for part in parents:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise InputError(where, f"'{part}' holds a value", "a mapping", f"upstream.{rest}")
    target[leaf] = value
