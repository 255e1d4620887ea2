"""Sizes of the potential and of its generated data."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from perfproof.core.errors import InputError
from perfproof.schema.base import Strict
from perfproof.schema.config import Recipe


class Architecture(Strict):
    """`architecture` of the recipe `hydragnn`."""

    hidden: int = Field(64, ge=4, description="features of an atom")
    layers: int = Field(3, ge=1, description="message-passing layers")
    radial: int = Field(16, ge=2, description="radial basis functions")
    cutoff: float = Field(2.5, gt=0, description="neighbour distance, reduced units")


class Data(Strict):
    """`data` of the recipe `hydragnn`: clusters with Lennard-Jones energies and forces."""

    n_train: int = Field(1024, ge=1, description="training clusters")
    n_validate: int = Field(16, ge=1, description="validation clusters; as many for test")
    atoms_min: int = Field(12, ge=2, description="fewest atoms of a cluster")
    atoms_max: int = Field(24, ge=2, description="most atoms of a cluster")
    species: int = Field(3, ge=1, le=8, description="kinds of atoms")


def refuse(recipe: Recipe, where: Path) -> None:
    """Refuse recipe values that this model would ignore or cannot hold."""
    data = Data.model_validate(recipe.data)
    if data.atoms_min > data.atoms_max:
        raise InputError(
            where, f"{data.atoms_min} > atoms_max {data.atoms_max}", "no more", "data.atoms_min"
        )
    if recipe.training.sdpa_backend != "default":
        found = f"'{recipe.training.sdpa_backend}'"
        raise InputError(
            where, found, "'default': the model has no attention", "training.sdpa_backend"
        )
