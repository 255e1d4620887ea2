"""HydraGNN: JSON configuration, variables `HYDRAGNN_*`, a profiler of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from perfproof.core.errors import InputError
from perfproof.schema.config import Recipe, ResolvedRecipe
from perfproof.training.upstream.documents import add, put
from perfproof.training.upstream.trainer import epochs

_EXAMPLE = "examples/multidataset_hpo_sc26"
# Its profiler passes over 5 steps, warms up for 3 and records 3, whatever the configuration says.
_WINDOW_STEPS = 11


class HydraGnn:
    """ORNL/HydraGNN."""

    name: ClassVar[str] = "hydragnn"
    known: ClassVar[tuple[tuple[str, str | None], ...]] = (
        (f"{_EXAMPLE}/gfm_mlip_all_mpnn.py", f"{_EXAMPLE}/gfm_mlip.json"),
    )
    arguments: ClassVar[tuple[str, ...]] = ("--inputfile", "{config}")
    pythonpath: ClassVar[tuple[str, ...]] = (".",)
    suffix: ClassVar[str] = ".json"
    precisions: ClassVar[Mapping[str, str]] = {
        "float64": "fp64",
        "float32": "fp32",
        "bfloat16": "bf16",
    }
    owned: ClassVar[Mapping[str, str]] = {
        "NeuralNetwork.Training.batch_size": "training.batch_size",
        "NeuralNetwork.Training.num_epoch": "training.epochs",
        "NeuralNetwork.Training.Optimizer.learning_rate": "training.learning_rate",
        "NeuralNetwork.Training.precision": "training.dtype",
        "NeuralNetwork.Training.Checkpoint": "training.save_checkpoints",
        "NeuralNetwork.Training.conv_checkpointing": "training.activation_checkpointing",
        "NeuralNetwork.Profile": "profile.enabled",
        "NeuralNetwork.Profile.enable": "profile.enabled",
        "NeuralNetwork.Profile.target_epoch": "training.epochs",
    }
    whole: ClassVar[Collection[str]] = ("NeuralNetwork.Architecture.output_heads",)
    profiles_itself: ClassVar[bool] = True
    keeps_loaders: ClassVar[bool] = True
    features: ClassVar[frozenset[str]] = frozenset(
        {"activation_checkpointing", "compile", "sdpa_backend"}
    )
    rank_env: ClassVar[Mapping[str, str]] = {
        "OMPI_COMM_WORLD_RANK": "{rank}",
        "OMPI_COMM_WORLD_SIZE": "{world_size}",
        "OMPI_COMM_WORLD_LOCAL_RANK": "{local_rank}",
    }

    @staticmethod
    def render(document: dict[str, Any], resolved: ResolvedRecipe, where: Path) -> None:
        """Set the owned keys; epochs must neither stop early nor end with the allocation."""
        recipe = resolved.recipe
        training, section = recipe.training, "NeuralNetwork.Training"
        if "Profile" in document:
            raise InputError(where, "at top level", "NeuralNetwork.Profile", "Profile")
        put(document, f"{section}.batch_size", training.batch_size, where)
        put(document, f"{section}.num_epoch", epochs(recipe), where)
        put(document, f"{section}.Optimizer.learning_rate", training.learning_rate, where)
        add(document, f"{section}.precision", HydraGnn.precisions[training.dtype], where)
        add(document, f"{section}.Checkpoint", training.save_checkpoints, where)
        add(document, f"{section}.conv_checkpointing", training.activation_checkpointing, where)
        add(document, f"{section}.EarlyStopping", False, where)
        add(document, f"{section}.CheckRemainingTime", False, where)
        profile = {"enable": int(recipe.profile.enabled), "target_epoch": training.epochs}
        add(document, "NeuralNetwork.Profile", profile, where)

    @staticmethod
    def env(recipe: Recipe) -> dict[str, str]:
        """Variables that follow from the recipe."""
        return {
            "HYDRAGNN_MAX_NUM_BATCH": str(recipe.training.batches_per_epoch),
            "HYDRAGNN_NUM_WORKERS": str(recipe.training.num_workers),
            "HYDRAGNN_VALTEST": str(int(recipe.training.validate_epochs)),
        }

    @staticmethod
    def passes(document: dict[str, Any], recipe: Recipe, where: Path) -> int:
        """One an epoch."""
        del document, where
        return epochs(recipe)

    @staticmethod
    def window_steps(recipe: Recipe) -> int:
        """Its profiler's, which is fixed."""
        del recipe
        return _WINDOW_STEPS
