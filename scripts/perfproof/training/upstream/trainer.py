"""What the launcher must know of a trainer: its files, its configuration, its variables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from perfproof.core.errors import InputError, unknown
from perfproof.schema.config import Recipe, ResolvedRecipe


class Trainer(Protocol):
    """A family of trainers with one interface."""

    name: ClassVar[str]
    known: ClassVar[tuple[tuple[str, str | None], ...]]
    """Entries to look for, in order, each with its configuration file; relative to the clone."""
    arguments: ClassVar[tuple[str, ...]]
    pythonpath: ClassVar[tuple[str, ...]]
    suffix: ClassVar[str]
    """Of the configuration file: `.json` or `.yaml`."""
    precisions: ClassVar[Mapping[str, str]]
    """The trainer's name of each type that it can compute in."""
    owned: ClassVar[Mapping[str, str]]
    """Keys of its configuration that follow from the recipe, and the recipe's keys."""
    whole: ClassVar[Collection[str]]
    profiles_itself: ClassVar[bool]
    keeps_loaders: ClassVar[bool]
    """Whether one training loader serves all epochs, so that its workers can live on."""
    features: ClassVar[frozenset[str]]
    """Switches of the recipe that take effect, besides types and persistent workers."""
    rank_env: ClassVar[Mapping[str, str]]
    """Variables by which it asks for its rank."""

    @staticmethod
    def render(document: dict[str, Any], resolved: ResolvedRecipe, where: Path) -> None:
        """Set the owned keys of the trainer's configuration."""
        ...

    @staticmethod
    def env(recipe: Recipe) -> dict[str, str]:
        """Variables that follow from the recipe."""
        ...

    @staticmethod
    def passes(document: dict[str, Any], recipe: Recipe, where: Path) -> int:
        """Passes over a training loader that the rendered configuration asks for."""
        ...

    @staticmethod
    def window_steps(recipe: Recipe) -> int:
        """Steps that the profiled epoch must have."""
        ...


def epochs(recipe: Recipe) -> int:
    """Timed epochs, and one more where there is a profile: no figure comes from that one."""
    return recipe.training.epochs + int(recipe.profile.enabled)


def recipe_file(recipe: Recipe) -> str:
    """Where the recipe's keys stand, for messages."""
    return f"config/recipes/{recipe.model}.yaml"


def check(recipe: Recipe, trainer: type[Trainer]) -> None:
    """Refuse what the trainer cannot do: it would be measured as if it had been done."""
    where = recipe_file(recipe)
    if recipe.training.dtype not in trainer.precisions:
        raise unknown(where, "training.dtype", recipe.training.dtype, trainer.precisions)
    if recipe.training.persistent_workers and not trainer.keeps_loaders:
        expected = f"false: {trainer.name} makes new loaders every epoch"
        raise InputError(where, "found true", expected, "training.persistent_workers")
    batches = recipe.training.batches_per_epoch
    needed = trainer.window_steps(recipe)
    if recipe.profile.enabled and batches < needed:
        expected = f"{needed} or more, which the profiler's window needs"
        raise InputError(where, f"found {batches}", expected, "training.batches_per_epoch")
