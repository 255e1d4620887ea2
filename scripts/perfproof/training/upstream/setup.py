"""One upstream run to prepare: recipe, site, trainer, clone. Everything else follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.errors import unknown
from perfproof.schema.config import Cluster, Recipe, ResolvedRecipe, Upstream
from perfproof.training.upstream.entry import Entry, expanded, find_entry
from perfproof.training.upstream.hydragnn import HydraGnn
from perfproof.training.upstream.orbit2 import Orbit2
from perfproof.training.upstream.trainer import Trainer, check

TRAINERS: Mapping[str, type[Trainer]] = {"hydragnn": HydraGnn, "orbit2": Orbit2}


@dataclass(frozen=True)
class Setup:
    """`where` and `key` say where the site stands, for messages."""

    resolved: ResolvedRecipe
    site: Upstream
    trainer: type[Trainer]
    where: str
    key: str
    root: Path
    entry: Entry

    @property
    def recipe(self) -> Recipe:
        """The recipe after the trial's levers."""
        return self.resolved.recipe


def setup(resolved: ResolvedRecipe, cluster: Cluster) -> Setup:
    """Find trainer and entry, and refuse what the trainer cannot do."""
    model = resolved.recipe.model
    site = cluster.upstream[model]
    where, key = f"config/clusters/{cluster.cluster}.yaml", f"upstream.{model}"
    name = site.trainer or model
    if name not in TRAINERS:
        raise unknown(f"{where}: {key}.trainer", "trainer", name, TRAINERS)
    trainer = TRAINERS[name]
    check(resolved.recipe, trainer)
    root = Path(expanded(site.root, where, f"{key}.root"))
    return Setup(
        resolved, site, trainer, where, key, root, find_entry(root, site, trainer, where, key)
    )
