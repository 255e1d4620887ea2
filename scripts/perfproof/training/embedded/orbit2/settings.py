"""Sizes of the downscaler and of its generated data."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from perfproof.core.errors import InputError
from perfproof.schema.base import Strict
from perfproof.schema.config import Recipe


class Architecture(Strict):
    """`architecture` of the recipe `orbit2`."""

    embed_dim: int = Field(64, ge=8, description="features of a token")
    depth: int = Field(4, ge=1, description="transformer blocks")
    heads: int = Field(4, ge=1, description="attention heads")
    patch: int = Field(2, ge=1, description="edge of a token, high-resolution points")


class Data(Strict):
    """`data` of the recipe `orbit2`: pairs of generated low- and high-resolution fields."""

    n_files: int = Field(7, ge=1, description="files that loader workers share out")
    samples_per_file: int = Field(25, ge=1, description="samples in each file")
    height: int = Field(16, ge=4, description="rows of the high-resolution field")
    width: int = Field(32, ge=4, description="columns of the high-resolution field")
    scale: int = Field(4, ge=2, description="low-resolution points are this much wider")
    variables_in: int = Field(7, ge=1, description="variables of the low-resolution field")
    variables_out: int = Field(3, ge=1, description="variables to downscale: the first ones")


def refuse(recipe: Recipe, where: Path) -> None:
    """Refuse recipe values that this model would ignore or cannot hold."""
    sizes, data = Architecture.model_validate(recipe.architecture), Data.model_validate(recipe.data)
    rules = (
        (sizes.embed_dim % sizes.heads, "architecture.embed_dim", "a multiple of heads"),
        (data.height % sizes.patch, "data.height", "a multiple of architecture.patch"),
        (data.width % sizes.patch, "data.width", "a multiple of architecture.patch"),
        (data.height % data.scale, "data.height", "a multiple of data.scale"),
        (data.width % data.scale, "data.width", "a multiple of data.scale"),
    )
    for remainder, key, expected in rules:
        if remainder:
            raise InputError(where, "does not divide evenly", expected, key)
    if data.variables_out > data.variables_in:
        raise InputError(where, f"{data.variables_out}", "at most variables_in", "variables_out")
    if recipe.training.validate_epochs:
        raise InputError(
            where, "true", "false: the trainer has no validation", "training.validate_epochs"
        )
