"""Arguments of the trainer's script and variables of its ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping

from perfproof.core.errors import InputError
from perfproof.training.upstream.setup import Setup
from perfproof.training.upstream.trainer import recipe_file


def arguments(made: Setup, config: str) -> list[str]:
    """The script's arguments, with `{config}` and `{precision}` filled in."""
    precision = made.trainer.precisions[made.recipe.training.dtype]
    given = made.site.arguments or made.trainer.arguments
    return [w.replace("{config}", config).replace("{precision}", precision) for w in given]


def environment(made: Setup, inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables that follow from the recipe, and `PYTHONPATH`; the recipe's own are set already."""
    resolved, derived = made.resolved, made.trainer.env(made.recipe)
    for name, value in sorted(derived.items()):
        given = resolved.env.get(name)
        if given not in (None, "", value):
            expected = f"'{value}', which follows from the recipe's training section"
            raise InputError(recipe_file(made.recipe), f"found '{given}'", expected, f"env.{name}")
    folders = [str(made.root / name) for name in (*made.site.pythonpath, *made.trainer.pythonpath)]
    before = resolved.env.get("PYTHONPATH") or inherited.get("PYTHONPATH")
    return derived | {"PYTHONPATH": os.pathsep.join([*folders, *([before] if before else [])])}
