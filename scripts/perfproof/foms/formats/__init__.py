"""Log formats, one file each. A file here that defines `FORMAT` is registered by being here."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from perfproof.foms.formats.base import LogFormat


@functools.cache
def registry() -> tuple[type[LogFormat], ...]:
    """All formats, by module name."""
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    )
    return tuple(module.FORMAT for module in modules if hasattr(module, "FORMAT"))
