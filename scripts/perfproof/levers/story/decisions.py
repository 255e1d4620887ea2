"""`decisions.json`: what a loop decided about each lever, the total gain, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from perfproof.levers.evidence import valid
from perfproof.levers.story.record import BASELINE, Loop, Row, rows
from perfproof.schema.base import Reason, Reasoned
from perfproof.schema.decisions import Confirmation, Cost, Decisions, LeverDecision
from perfproof.schema.loop import LeverRecord, LoopState, Measurement

Record = TypeVar("Record", bound=Reasoned)

_JUDGED = ("effect", "interval", "shrunk", "p_value", "p_bound")


def decisions(loop: Loop) -> Decisions:
    """Everything that was decided, levers in the order in which they were tried."""
    state, made = loop.explored, rows(loop)
    tried = loop.tried()
    others = [lever for lever in state.levers if lever.order is None]
    return _reasoned(
        Decisions,
        spec=state.spec,
        noise=state.noise or Reason.TOO_FEW_VALUES,
        detectable=Reason.TOO_FEW_VALUES if state.detectable is None else state.detectable,
        shares=state.shares,
        boundness=state.boundness or Reason.NOT_APPLICABLE,
        levers=[_lever(state, lever, made) for lever in [*tried, *others]],
        path=loop.path(),
        best=state.best,
        confirmation=confirmation(loop, made),
        costs=costs(loop, made),
        ending=loop.ending,
        ended_because=_ended_because(loop),
        steps=state.step,
    )


def _lever(state: LoopState, lever: LeverRecord, made: Sequence[Row]) -> LeverDecision:
    own = [row for row in made if row.lever == lever.id]
    said = ("order", "picked_because", "against", "trial")
    values = {name: _or(getattr(lever, name), lever.reasons.get(name)) for name in said}
    judged = lever.judgement
    for name in _JUDGED:
        reasons = judged.reasons if judged else {}
        values[name] = _or(getattr(judged, name, None), reasons.get(name))
    kind = next(candidate.kind for candidate in state.spec.levers if candidate.id == lever.id)
    return _reasoned(
        LeverDecision,
        id=lever.id,
        kind=kind,
        status=lever.status,
        why=lever.why,
        candidate_runs=judged.candidate_runs if judged else 0,
        best_runs=judged.best_runs if judged else 0,
        runs=lever.runs,
        node_hours=_cost(lever.id, own).node_hours,
        measured=[row.result.measurement for row in own],
        **values,
    )


def _reasoned(model: type[Record], /, **values: object) -> Record:
    """Build a record; a field given as a `Reason` becomes null and keeps its reason."""
    reasons = {name: value for name, value in values.items() if isinstance(value, Reason)}
    fields = {name: None if name in reasons else value for name, value in values.items()}
    return model.model_validate({**fields, "reasons": reasons})


def _or(value: object, reason: Reason | None) -> object:
    return (reason or Reason.NOT_APPLICABLE) if value is None else value


def confirmation(loop: Loop, made: Sequence[Row]) -> Confirmation:
    """How the total gain was measured, or why it was not."""
    best = loop.explored.best
    arms = [row.result for row in made if row.role == "confirmation" and valid(row.result)]
    counts = [sum(r.measurement.trial == trial for r in arms) for trial in (best, loop.start)]
    outcome, why = _outcome(loop)
    found = loop.last.confirmation
    reasons = found.reasons if found else {}
    return _reasoned(
        Confirmation,
        outcome=outcome,
        why=why,
        best_runs=counts[0],
        baseline_runs=counts[1],
        **{
            name: _or(getattr(found, name, None), reasons.get(name))
            for name in ("effect", "interval", "p_value")
        },
    )


def _outcome(loop: Loop) -> tuple[str, str]:
    if loop.explored.best == loop.start:
        return "nothing_to_confirm", "no lever was accepted"
    found = loop.last.confirmation
    if found is None or found.effect is None:
        ended = loop.confirmed.action.why if loop.confirmed else "the loop ended before it"
        return "not_measured", ended
    if found.interval is None:
        return "not_measured", "the runs give no interval"
    if found.interval[0] > 0:
        return "confirmed", "the interval lies above zero"
    if found.interval[1] < 0:
        return "not_confirmed", "the interval lies below zero: the best is worse than the baseline"
    return "not_confirmed", "the interval includes zero"


def costs(loop: Loop, made: Sequence[Row]) -> list[Cost]:
    """The ledger: baseline, levers as tried, confirmation, total."""
    parts: list[tuple[str, list[Row]]] = [
        (BASELINE, [row for row in made if row.role == "baseline"])
    ]
    for lever in loop.tried():
        parts.append((lever.id, [row for row in made if row.lever == lever.id]))
    parts.append(("confirmation", [row for row in made if row.role == "confirmation"]))
    parts.append(("total", list(made)))
    return [_cost(part, own) for part, own in parts]


def _cost(part: str, own: Sequence[Row]) -> Cost:
    endings = [row.result.ending for row in own]
    hours = [row.result.node_hours for row in own]
    return Cost(
        part=part,
        runs=len(own),
        failed=endings.count("failed"),
        infrastructure=endings.count("infrastructure"),
        node_hours=math.fsum(hour for hour in hours if hour is not None),
        without_cost=hours.count(None),
    )


def _ended_because(loop: Loop) -> str:
    action = loop.explored.action
    if action.kind == "stop":
        return action.why
    return f"{ending_words(loop.ending)}; next would have been: {action.why}"


def ending_words(label: str) -> str:
    """A label of `perfproof.levers.chain` in words; any other one as it is."""
    kind, _, number = label.partition("-")
    words = {
        "runs": f"the budget of {number} runs was used",
        "hours": f"the budget of {number} node-hours was used",
        "stopped": f"a STOP file was found after step {number}",
        "missing": "a run that was asked for does not exist",
        "replayed": "the recorded loop ended here",
    }
    return words.get(kind, label) if number or kind in ("missing", "replayed") else label


def measured(own: Sequence[Measurement]) -> str:
    """Runs in words: `bf16 rep 0, rep 1; baseline rep 5`."""
    trials = list(dict.fromkeys(run.trial for run in own))
    said = []
    for trial in trials:
        reps = ", ".join(f"rep {run.rep}" for run in own if run.trial == trial)
        said.append(f"{trial} {reps}")
    return "; ".join(said)
