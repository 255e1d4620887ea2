"""Trial name and configuration to one resolved recipe. Pure: no clock, no machine, no PyTorch."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any, Literal

from perfproof.core.config import load_cluster, load_levers, load_recipe
from perfproof.core.errors import InputError, unknown
from perfproof.core.files import read_text, validate, write_record
from perfproof.core.step import Status, parser, run
from perfproof.schema.config import Cluster, Recipe, ResolvedRecipe, Workload
from perfproof.schema.levers import Lever
from perfproof.training.embedded.models import MODELS
from perfproof.training.features import refuse_missing
from perfproof.training.keys import Sections, sections, set_key
from perfproof.training.trial import trial_levers

Asked = Literal["auto", "upstream", "embedded"]


def resolve(
    root: Path, *, model: str, trial: str, cluster: str, nodes: int, workload: Asked = "auto"
) -> ResolvedRecipe:
    """The recipe of `trial`, fully spelled out; `root` holds `config/`."""
    site = load_cluster(root, cluster)
    levers = trial_levers(trial, load_levers(root, model), _file(root, "levers", model))
    chosen = _workload(workload, model, site, _file(root, "clusters", cluster))
    for lever in levers:
        place = f"{_file(root, 'levers', model)}: {lever.id}"
        refuse_missing(lever, model, chosen, site, place)
    recipe = _with_levers(load_recipe(root, model), levers, root, model)
    if chosen is Workload.EMBEDDED:
        MODELS[model].check(recipe, _file(root, "recipes", model))
    elif recipe.training.compile_backend != "inductor":
        found, key = f"'{recipe.training.compile_backend}'", "training.compile_backend"
        raise InputError("trial", found, "'inductor': a real trainer takes no other", key)
    _check_loader(recipe, trial)
    env = site.env | _upstream_env(chosen, site, model) | recipe.env
    for lever in levers:
        env = env | lever.env
    return ResolvedRecipe(
        trial=trial,
        levers=[lever.id for lever in levers],
        workload=chosen,
        cluster=cluster,
        nodes=nodes,
        ranks=_ranks(recipe, site, nodes, _file(root, "recipes", model)),
        recipe=recipe,
        env=env,
        hooks=_hooks(root, levers),
    )


def _hooks(root: Path, levers: list[Lever]) -> dict[str, str]:
    """Sources, not names: a hook that was changed is another recipe."""
    folder = root / "config" / "hooks"
    names = sorted({lever.hook for lever in levers if lever.hook})
    for name in names:
        if not (folder / name).is_file():
            raise unknown(folder, "hook", name, (path.name for path in folder.glob("*.py")))
    return {name: read_text(folder / name) for name in names}


def _file(root: Path, folder: str, name: str) -> Path:
    return root / "config" / folder / f"{name}.yaml"


def _workload(asked: Asked, model: str, site: Cluster, where: Path) -> Workload:
    has_upstream = model in site.upstream
    if asked == "upstream" and not has_upstream:
        raise InputError(where, f"no trainer for '{model}'", "its path and entry", "upstream")
    if asked == "upstream" or (asked == "auto" and has_upstream):
        return Workload.UPSTREAM
    if model not in MODELS:
        raise unknown("config", "embedded model", model, MODELS)
    return Workload.EMBEDDED


def _with_levers(recipe: Recipe, levers: list[Lever], root: Path, model: str) -> Recipe:
    """Sizes checked and completed with their defaults, then the levers' keys on top."""
    known = MODELS.get(model)
    typed = sections(known.architecture, known.data) if known else sections(None, None)
    recipe_file = _file(root, "recipes", model)
    data = recipe.model_dump()
    for name in ("architecture", "data"):
        data[name] = _complete(data[name], name, typed, recipe_file)
    plain = copy.deepcopy(data)
    for lever in levers:
        place = f"{_file(root, 'levers', model)}: {lever.id}"
        for dotted, value in sorted(lever.set.items()):
            set_key(data, dotted, value, typed, place)
        _refuse_idle(lever, plain, typed, place)
    return validate(data, Recipe, recipe_file)


def _refuse_idle(lever: Lever, plain: dict[str, Any], typed: Sections, place: str) -> None:
    """Refuse a lever that leaves the recipe as it is: it would be measured as a change."""
    if lever.hook:
        return
    alone = copy.deepcopy(plain)
    for dotted, value in lever.set.items():
        set_key(alone, dotted, value, typed, place)
    if alone == plain and lever.env.items() <= plain["env"].items():
        raise InputError(place, "changes nothing in this recipe", "another value than the recipe's")


def _complete(given: dict[str, Any], name: str, typed: Sections, where: Path) -> dict[str, Any]:
    if name not in typed:
        return given
    return validate(given, typed[name], f"{where}: {name}").model_dump()


def _check_loader(recipe: Recipe, trial: str) -> None:
    if recipe.training.persistent_workers and recipe.training.num_workers == 0:
        raise InputError(
            "trial",
            f"'{trial}' keeps loader workers but has none",
            "training.num_workers of 1 or more with training.persistent_workers",
        )


def _upstream_env(workload: Workload, site: Cluster, model: str) -> dict[str, str]:
    return site.upstream[model].env if workload is Workload.UPSTREAM else {}


def _ranks(recipe: Recipe, site: Cluster, nodes: int, where: Path) -> int:
    if nodes < 1:
        raise InputError("config", f"{nodes} nodes", "1 or more", "nodes")
    if nodes > 1 and site.launcher == "local":
        raise InputError("config", f"{nodes} nodes", f"1 on cluster '{site.cluster}'", "nodes")
    layout = recipe.parallel
    ranks = nodes * (layout.ranks_per_node or site.gpus_per_node or 1)
    given = [size for size in (layout.fsdp, layout.simple_ddp) if size is not None]
    product = layout.tensor_par
    for size in given:
        product *= size
    fits = ranks == product if len(given) == 2 else ranks % product == 0
    if not fits:
        expected = f"sizes whose product is the number of ranks, {ranks}"
        raise InputError(where, f"fsdp x simple_ddp x tensor_par = {product}", expected, "parallel")
    return ranks


def main() -> None:
    """`python -m perfproof.training.resolve`."""
    cli = parser("Resolve a trial's recipe.")
    cli.add_argument("--root", type=Path, default=Path(), help="directory that holds config/")
    cli.add_argument("--model", required=True, help="a recipe in config/recipes/")
    cli.add_argument("--trial", default="baseline", help="baseline, or sorted lever ids with +")
    cli.add_argument("--cluster", default="local", help="a cluster in config/clusters/")
    cli.add_argument("--nodes", type=int, default=1, help="number of nodes")
    cli.add_argument(
        "--workload", choices=("auto", "upstream", "embedded"), default="auto", help="trainer"
    )
    cli.add_argument("--out", type=Path, required=True, help="resolved recipe, JSON")
    run(_step, cli.parse_args())


def _step(arguments: argparse.Namespace) -> Status:
    resolved = resolve(
        arguments.root,
        model=arguments.model,
        trial=arguments.trial,
        cluster=arguments.cluster,
        nodes=arguments.nodes,
        workload=arguments.workload,
    )
    write_record(arguments.out, resolved)
    return Status("ok", f"{resolved.trial}: {resolved.ranks} rank(s), {resolved.workload.value}")


if __name__ == "__main__":
    main()
