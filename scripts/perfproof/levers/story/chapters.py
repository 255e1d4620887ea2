"""One lever's chapter: why it was picked, what changed, what was seen, the verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence

from markupsafe import Markup

from perfproof.levers.evidence import valid
from perfproof.levers.story.page import bullets, code, codes, heading, joined, strong
from perfproof.levers.story.record import Loop, Row
from perfproof.levers.story.words import SAME, count, hours, interval, shown
from perfproof.report.units import gain, number
from perfproof.schema.decisions import LeverDecision

# Values of each side that are listed; more are in the table.
_LISTED = 12


def chapter(loop: Loop, lever: LeverDecision, made: Sequence[Row]) -> list[str]:
    """Heading and list of one lever that was tried."""
    own = [row for row in made if row.lever == lever.id]
    items = [
        joined(strong("Why:"), " ", lever.picked_because or "not recorded"),
        joined(strong("Changed:"), " ", _changed(loop, lever)),
        *_seen(lever, own),
        joined(strong("Verdict:"), " ", f"{lever.status.replace('_', ' ')}: {lever.why}"),
        joined(strong("Cost:"), " ", f"{count(len(own), 'run')}, {_cost(own)} node-hours"),
    ]
    title = f": {lever.status.replace('_', ' ')}"
    return [heading(3, f"{lever.order}. ", code(lever.id), title), bullets(items)]


def _changed(loop: Loop, lever: LeverDecision) -> Markup:
    """The catalog's words and keys; the trial's name where no catalog is at hand."""
    trial = joined("trial ", code(lever.trial or ""), " against ", code(lever.against or ""))
    entry = loop.lever(lever.id)
    if entry is None:
        return trial
    keys = [f"{key}={_literal(value)}" for key, value in sorted({**entry.set, **entry.env}.items())]
    return joined(entry.description, " ", codes(keys), " (" if keys else "(", trial, ")")


def _literal(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _seen(lever: LeverDecision, own: Sequence[Row]) -> list[Markup]:
    items = [joined(strong("Seen:"), " ", _effect(lever))]
    for role in ("candidate", "best"):
        if values := _values(own, role):
            trial = lever.trial if role == "candidate" else lever.against
            items.append(joined("Runs of ", code(trial or ""), ": ", values))
    for row in own:
        if not valid(row.result):
            items.append(joined("Left out: ", _left_out(row)))
    proofs = {f"{f.what}" for row in own for f in row.result.proof if f.lever == lever.id}
    items += [joined("Proof of effect: ", proof) for proof in sorted(proofs)]
    return items


def _effect(lever: LeverDecision) -> str:
    if lever.effect is None:
        return "no comparison was made"
    said = f"{shown(lever)} {interval(lever.interval)}".strip()
    runs = f"from {lever.candidate_runs} and {lever.best_runs} runs"
    raw = f" (as measured {gain(lever.effect)})" if said.startswith(SAME) else ""
    words = [f"{said} {runs}{raw}"]
    if lever.shrunk is not None:
        words.append(f"to expect {gain(lever.shrunk)}")
    if lever.p_value is not None:
        bound = "" if lever.p_bound is None else f" (needed: below {number(lever.p_bound, 2)})"
        words.append(f"p = {number(lever.p_value, 2)}{bound}")
    return ", ".join(words)


def _values(own: Sequence[Row], role: str) -> str:
    found = [row.result.value for row in own if row.role == role and valid(row.result)]
    listed = ", ".join(number(float(value)) for value in found[:_LISTED] if value is not None)
    more = len(found) - _LISTED
    return f"{listed} and {more} more" if more > 0 else listed


def _left_out(row: Row) -> Markup:
    result = row.result
    run = joined(code(result.measurement.trial), f" rep {result.measurement.rep}")
    if result.ending != "measured":
        return joined(run, f": {result.ending}: {result.cause or 'no cause recorded'}")
    reason = result.reasons.get("value")
    why = "; ".join(result.differs) or f"no figure ({reason.value if reason else 'not recorded'})"
    return joined(run, f": {why}")


def _cost(own: Sequence[Row]) -> str:
    known = [row.result.node_hours for row in own if row.result.node_hours is not None]
    return hours(sum(known), len(own) - len(known))
