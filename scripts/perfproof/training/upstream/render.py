"""The trainer's own configuration: its file, the site's keys, the recipe's keys, in this order."""

from __future__ import annotations

import json
from typing import Any

import yaml

from perfproof.core.errors import InputError
from perfproof.core.files import read_json, read_yaml
from perfproof.training.upstream.documents import merge
from perfproof.training.upstream.entry import expanded
from perfproof.training.upstream.setup import Setup
from perfproof.training.upstream.trainer import recipe_file


def rendered(made: Setup) -> dict[str, Any]:
    """The configuration of the run, as the trainer will read it."""
    document, template = _template(made), made.entry.template
    owned, whole = made.trainer.owned, made.trainer.whole
    places = (
        (f"{made.where}: {made.key}.config", _expanded(made.site.config, made)),
        (f"{recipe_file(made.recipe)}: upstream", made.recipe.upstream),
    )
    for source, changes in places:
        merge(document, changes, template, source=source, owned=owned, whole=whole)
    made.trainer.render(document, made.resolved, template)
    return document


def _expanded(value: Any, made: Setup) -> Any:
    """A site's value with the variables of its paths filled in."""
    if isinstance(value, dict):
        return {key: _expanded(inner, made) for key, inner in value.items()}
    if isinstance(value, str):
        return expanded(value, made.where, f"{made.key}.config")
    return value


def _template(made: Setup) -> dict[str, Any]:
    path = made.entry.template
    document = read_json(path) if path.suffix == ".json" else read_yaml(path)
    if not isinstance(document, dict):
        raise InputError(path, f"found {type(document).__name__}", "a mapping")
    return document


def dumped(document: dict[str, Any], suffix: str) -> str:
    """The text of a configuration. The order of keys stays: it is ORBIT-2's order of data sets."""
    if suffix == ".json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
