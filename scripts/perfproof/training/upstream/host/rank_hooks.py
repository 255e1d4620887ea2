"""Rank hooks: Python that a lever has each rank run before its model is built.

A hook defines `apply()`, which changes the process and returns what holds then, by name. Nothing
but the standard library is needed here: it runs inside the trainer's own environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class HookError(RuntimeError):
    """A hook is not one, or did not say what it did."""


def run_hooks(hooks: Mapping[str, str]) -> dict[str, str]:
    """Run the hooks (name to source) in the order of their names; return what they say holds.

    What a hook itself raises ends the rank with its traceback.
    """
    effects: dict[str, str] = {}
    for name, source in sorted(hooks.items()):
        effects |= _said(name, _apply(name, source)())
    return effects


def _apply(name: str, source: str) -> Any:
    space: dict[str, Any] = {"__name__": f"hook_{name}", "__file__": name}
    exec(compile(source, f"config/hooks/{name}", "exec"), space)
    apply = space.get("apply")
    if not callable(apply):
        raise HookError(f"hook {name}: defines no function apply(), which a hook must")
    return apply


def _said(name: str, effects: object) -> dict[str, str]:
    if not isinstance(effects, dict) or not effects:
        raise HookError(f"hook {name}: apply() returned {effects!r}, expected what holds, by name")
    return {str(key): str(value) for key, value in effects.items()}
