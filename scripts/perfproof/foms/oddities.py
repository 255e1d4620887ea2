"""What a reader must know of a run's log: other runs in it, attempts, times that are none."""

from __future__ import annotations

import itertools
from collections import Counter

from perfproof.foms.formats import registry
from perfproof.foms.logs import RunLog
from perfproof.foms.sources import Sources
from perfproof.foms.views import Run

_SHOWN = 5


def refuse_other_runs(logs: RunLog, sources: Sources) -> None:
    """No figures of a log that is not of the run in the manifest."""
    if "manifest" in sources.contradicted:
        logs.refuse()
    if logs.log is None or sources.manifest is None:
        return
    model, found = sources.manifest.resolved.recipe.model, logs.log.trainers
    if found and model in {form.trainer for form in registry()} and model not in found:
        trainer = " and ".join(sorted(found))
        logs.refuse(logs.where, f"log of {trainer}, manifest of {model}; expected one run's files")


def bad_times(run: Run) -> list[str]:
    """Times of steps that cannot be one, in at most one line."""
    table = run.log.tables[run.steps.source] if run.log and run.steps else None
    if table is None or not table.bad_times:
        return []
    count = f"{table.bad_times} step time{'s' * (table.bad_times > 1)}"
    return [f"{count} not used: zero, negative or out of range; expected seconds"]


def started_anew(run: Run) -> list[str]:
    """Epochs that the log begins more than once, in at most one line."""
    if run.steps is not None:
        steps = run.steps.steps
        epochs = steps.epoch[steps.epoch_starts()].tolist()
    else:
        epochs = [epoch.epoch for epoch in run.epochs.epochs]
    again = [number for number, times in sorted(Counter(epochs).items()) if times > 1]
    if again:
        return [f"{_named(again)} started {_times(epochs)}; expected one run in a log"]
    back = [b for a, b in itertools.pairwise(epochs) if b < a]
    return [f"epochs go back to {back[0]}; expected one run in a log"] if back else []


def _named(epochs: list[int]) -> str:
    if len(epochs) == 1:
        return f"epoch {epochs[0]} was"
    more = f" and {len(epochs) - _SHOWN} more" if len(epochs) > _SHOWN else ""
    return f"epochs {', '.join(map(str, epochs[:_SHOWN]))}{more} were"


def _times(epochs: list[int]) -> str:
    most = max(Counter(epochs).values())
    return "twice" if most == 2 else f"up to {most} times"
