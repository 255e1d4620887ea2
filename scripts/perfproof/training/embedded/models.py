"""The embedded models: the sizes each takes and the recipes it refuses. Light: no PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.schema.base import Strict
from perfproof.schema.config import Recipe
from perfproof.training.embedded.hydragnn import settings as hydragnn
from perfproof.training.embedded.orbit2 import settings as orbit2


@dataclass(frozen=True)
class EmbeddedModel:
    """Typed sizes of one embedded model and its own refusals."""

    architecture: type[Strict]
    data: type[Strict]
    refuse: Callable[[Recipe, Path], None]
    features: frozenset[str]
    """Switches of the recipe that levers may require, as the trainer offers them."""

    def check(self, recipe: Recipe, where: Path) -> None:
        """Refuse what this workload would silently ignore. `where` is the recipe's file."""
        layout = recipe.parallel
        if layout.tensor_par > 1 or (layout.fsdp or 1) > 1:
            found = f"fsdp {layout.fsdp}, tensor_par {layout.tensor_par}"
            expected = "1 for both: the embedded workload replicates the model on every rank"
            raise InputError(where, found, expected, "parallel")
        self.refuse(recipe, where)


_ALL = frozenset(
    {"activation_checkpointing", "compile", "persistent_workers", "float64", "float32", "bfloat16"}
)
MODELS: Mapping[str, EmbeddedModel] = {
    "hydragnn": EmbeddedModel(hydragnn.Architecture, hydragnn.Data, hydragnn.refuse, _ALL),
    "orbit2": EmbeddedModel(
        orbit2.Architecture, orbit2.Data, orbit2.refuse, _ALL | {"sdpa_backend"}
    ),
}
