"""The moves of a loop: ask for a run, stop, note an event, change one lever's record."""

from __future__ import annotations

from typing import Any

from perfproof.levers.evidence import next_rep, reference
from perfproof.schema.base import Reason
from perfproof.schema.loop import Action, LeverRecord, LoopSpec, LoopState


def event(name: str, **values: object) -> str:
    """`NAME key=value …`; values with blanks are quoted."""
    words = [f"{key}={_quoted(str(value))}" for key, value in values.items()]
    return " ".join([name, *words])


def _quoted(text: str) -> str:
    plain = " ".join(text.split())
    return '"' + plain.replace('"', "'") + '"' if " " in plain or not plain else plain


def noted(state: LoopState, name: str, **values: object) -> LoopState:
    """The state with one more event."""
    return state.model_copy(update={"events": [*state.events, event(name, **values)]})


def measure(state: LoopState, trial: str, why: str, with_claims: bool = False) -> LoopState:
    """Ask for the next repetition of `trial`."""
    action = Action(
        kind="measure",
        measure=[next_rep(state, trial)],
        against=reference(state),
        with_claims=with_claims,
        why=why,
    )
    return state.model_copy(update={"action": action})


def stop(state: LoopState, why: str) -> LoopState:
    """Nothing more to do."""
    action = Action(kind="stop", why=why)
    done = noted(state, "LOOP_STOP", reason=why)
    return done.model_copy(update={"phase": "done", "current": None, "action": action})


def records_of(spec: LoopSpec) -> list[LeverRecord]:
    """One record a lever, as the loop begins."""
    return [_record(candidate.id, candidate.not_eligible) for candidate in spec.levers]


def _record(lever: str, not_eligible: str | None) -> LeverRecord:
    names = ("order", "picked_because", "against", "trial", "judgement")
    return LeverRecord(
        id=lever,
        status="not_eligible" if not_eligible else "waiting",
        why=not_eligible or "not tried yet",
        reasons=dict.fromkeys(names, Reason.NOT_APPLICABLE),
        **dict.fromkeys(names),
    )


def record_of(state: LoopState, lever: str) -> LeverRecord:
    """The record of one lever."""
    return next(record for record in state.levers if record.id == lever)


def changed(state: LoopState, lever: str, **values: Any) -> LoopState:
    """The state with new values in one lever's record; a value that is there needs no reason."""
    levers = []
    for record in state.levers:
        if record.id == lever:
            reasons = {k: v for k, v in record.reasons.items() if values.get(k) is None}
            record = record.model_copy(update={**values, "reasons": reasons})
        levers.append(record)
    return state.model_copy(update={"levers": levers})
