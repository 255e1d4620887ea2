"""ORBIT-2 and the trainers that share its interface: YAML configuration, no profiler."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from perfproof.core.errors import InputError
from perfproof.schema.config import Parallel, Recipe, ResolvedRecipe
from perfproof.training.upstream.documents import get, put
from perfproof.training.upstream.trainer import epochs, recipe_file


class Orbit2:
    """XiaoWang-Github/ORBIT-2, and Bayes-CAST where the clone holds it."""

    name: ClassVar[str] = "orbit2"
    known: ClassVar[tuple[tuple[str, str | None], ...]] = (
        ("launch/train_edm.py", None),
        ("launch/launch_diffusion.sh", None),
        ("launch_diffusion.sh", None),
        ("examples/launch_diffusion.sh", None),
        ("examples/intermediate_downscaling.py", "configs/interm_8m.yaml"),
    )
    arguments: ClassVar[tuple[str, ...]] = ("{config}",)
    pythonpath: ClassVar[tuple[str, ...]] = ("src",)
    suffix: ClassVar[str] = ".yaml"
    precisions: ClassVar[Mapping[str, str]] = {"float32": "float32", "bfloat16": "bfloat16"}
    owned: ClassVar[Mapping[str, str]] = {
        "trainer.max_epochs": "training.epochs",
        "trainer.batch_size": "training.batch_size",
        "trainer.num_workers": "training.num_workers",
        "trainer.data_type": "training.dtype",
        "model.lr": "training.learning_rate",
        "parallelism.fsdp": "parallel.fsdp",
        "parallelism.simple_ddp": "parallel.simple_ddp",
        "parallelism.tensor_par": "parallel.tensor_par",
    }
    whole: ClassVar[Collection[str]] = (
        "data.low_res_dir",
        "data.high_res_dir",
        "data.spatial_resolution",
        "data.dict_in_variables",
        "data.dict_out_variables",
        "data.var_weights",
    )
    profiles_itself: ClassVar[bool] = False
    keeps_loaders: ClassVar[bool] = False
    features: ClassVar[frozenset[str]] = frozenset({"compile", "sdpa_backend"})
    rank_env: ClassVar[Mapping[str, str]] = {
        "SLURM_NTASKS": "{world_size}",
        "SLURM_PROCID": "{rank}",
        "SLURM_LOCALID": "{local_rank}",
    }

    @staticmethod
    def render(document: dict[str, Any], resolved: ResolvedRecipe, where: Path) -> None:
        """Set the owned keys. `max_epochs: N` trains N - 1 epochs, and 1 trains none."""
        recipe = resolved.recipe
        training = recipe.training
        put(document, "trainer.max_epochs", epochs(recipe) + 1, where)
        put(document, "trainer.batch_size", training.batch_size, where)
        put(document, "trainer.num_workers", training.num_workers, where)
        put(document, "trainer.data_type", Orbit2.precisions[training.dtype], where)
        put(document, "model.lr", training.learning_rate, where)
        sizes = layout(recipe.parallel, resolved.ranks, recipe_file(recipe))
        for name, size in sizes.items():
            put(document, f"parallelism.{name}", size, where)
        heads = get(document, "model.num_heads", where)
        if heads % sizes["tensor_par"]:
            expected = f"a divisor of model.num_heads, {heads}"
            found = f"found {sizes['tensor_par']}"
            raise InputError(recipe_file(recipe), found, expected, "parallel.tensor_par")

    @staticmethod
    def env(recipe: Recipe) -> dict[str, str]:
        """None: what follows from the recipe stands in the configuration."""
        del recipe
        return {}

    @staticmethod
    def passes(document: dict[str, Any], recipe: Recipe, where: Path) -> int:
        """One an epoch and data set."""
        return epochs(recipe) * len(get(document, "data.low_res_dir", where))

    @staticmethod
    def window_steps(recipe: Recipe) -> int:
        """The recipe's window, which the host applies."""
        window = recipe.profile
        return window.wait + window.warmup + window.active


def layout(parallel: Parallel, ranks: int, where: str) -> dict[str, int]:
    """Sizes whose product is the number of ranks; sizes that are not given are derived."""
    data_ranks, rest = divmod(ranks, parallel.tensor_par)
    fsdp, simple_ddp = parallel.fsdp, parallel.simple_ddp
    if fsdp is None:
        fsdp = data_ranks // (simple_ddp or 1)
    if simple_ddp is None:
        simple_ddp = data_ranks // fsdp if fsdp else 0
    if rest or fsdp * simple_ddp != data_ranks:
        found = f"fsdp x simple_ddp x tensor_par = {fsdp} x {simple_ddp} x {parallel.tensor_par}"
        raise InputError(where, found, f"a product of {ranks}, the number of ranks", "parallel")
    return {"fsdp": fsdp, "simple_ddp": simple_ddp, "tensor_par": parallel.tensor_par}
