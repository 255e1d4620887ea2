"""Loading configuration: settings, recipes, clusters, lever catalogs. Pure reads, typed results."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from perfproof.core.errors import InputError, unknown
from perfproof.core.files import read_yaml, validate
from perfproof.schema.config import Cluster, Recipe, Settings
from perfproof.schema.levers import LeverCatalog

T = TypeVar("T")

# Snakemake adds keys of its own to `config`; they are not settings.
_SNAKEMAKE_KEYS = frozenset({"scheduler", "ilp_solver"})


def load_settings(config: Mapping[str, Any], root: Path) -> Settings:
    """The invocation's settings, checked; `root` is the repository."""
    chosen = {key: value for key, value in config.items() if key not in _SNAKEMAKE_KEYS}
    settings = validate(chosen, Settings, "config")
    known(root, "recipes", "model", settings.model)
    known(root, "clusters", "cluster", settings.cluster)
    return settings


def load_recipe(root: Path, model: str) -> Recipe:
    """`config/recipes/<model>.yaml`."""
    path = known(root, "recipes", "model", model)
    recipe = validate(read_yaml(path), Recipe, path)
    return _named(recipe, "model", recipe.model, model, path)


def load_cluster(root: Path, cluster: str) -> Cluster:
    """`config/clusters/<cluster>.yaml`."""
    path = known(root, "clusters", "cluster", cluster)
    loaded = validate(read_yaml(path), Cluster, path)
    return _named(loaded, "cluster", loaded.cluster, cluster, path)


def load_levers(root: Path, model: str) -> LeverCatalog:
    """`config/levers/<model>.yaml`."""
    path = known(root, "levers", "model", model)
    catalog = read_catalog(path)
    return _named(catalog, "model", catalog.model, model, path)


def read_catalog(path: Path) -> LeverCatalog:
    """A lever catalog by its path."""
    content = b""
    # A file that cannot be read is told by the reader of YAML, in its words.
    with contextlib.suppress(OSError):
        content = path.read_bytes()
    return _catalog(path, content)


@functools.lru_cache(maxsize=8)
def _catalog(path: Path, _: bytes) -> LeverCatalog:
    """Parsed once for each content: planning a loop resolves every lever."""
    return validate(read_yaml(path), LeverCatalog, path)


def known(root: Path, folder: str, kind: str, name: str) -> Path:
    """The YAML file of `name` in `config/<folder>/`, or an error with the nearest known name."""
    directory = root / "config" / folder
    path = directory / f"{name}.yaml"
    if not path.is_file():
        raise unknown("config", kind, name, (p.stem for p in directory.glob("*.yaml")))
    return path


def _named(loaded: T, key: str, inside: str, outside: str, path: Path) -> T:
    if inside != outside:
        raise InputError(path, f"'{inside}'", f"'{outside}', the file's name", key)
    return loaded
