"""Names of trials: `baseline`, or lever ids in sorted order joined by `+`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from perfproof.core.errors import InputError, unknown
from perfproof.schema.levers import Lever, LeverCatalog

BASELINE = "baseline"


def trial_name(ids: Iterable[str]) -> str:
    """The one name of the trial with these lever ids."""
    return "+".join(sorted(set(ids))) or BASELINE


def ids_of(trial: str) -> list[str]:
    """The lever ids that a trial's name is made of."""
    return [] if trial == BASELINE else trial.split("+")


def trial_levers(trial: str, catalog: LeverCatalog, where: Path | str) -> list[Lever]:
    """The levers a trial names, sorted by id. `where` is the catalog's file, for messages."""
    if trial == BASELINE:
        return []
    ids = trial.split("+")
    by_id = {lever.id: lever for lever in catalog.levers}
    named = [name for name in ids if name != BASELINE]
    for name in named:
        if name not in by_id:
            raise unknown(where, "lever", name, by_id)
    if ids != sorted(set(named)):
        raise InputError("trial", f"'{trial}'", f"'{trial_name(named)}' (sorted, each id once)")
    levers = [by_id[name] for name in ids]
    for first, second in itertools.combinations(levers, 2):
        _refuse_conflict(first, second, where)
    return levers


def _refuse_conflict(first: Lever, second: Lever, where: Path | str) -> None:
    pair = f"levers '{first.id}' and '{second.id}'"
    if second.id in first.conflicts or first.id in second.conflicts:
        raise InputError(where, f"{pair} conflict", "at most one of them in a trial")
    for ours, theirs in ((first.set, second.set), (first.env, second.env)):
        both = sorted(key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key])
        if both:
            raise InputError(where, f"{pair} both set '{both[0]}'", "at most one of them")
