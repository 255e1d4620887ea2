"""`do_not_retry.json`: levers that these conditions speak against, ready for the catalog."""

from __future__ import annotations

from collections.abc import Sequence

from perfproof.levers.evidence import valid
from perfproof.levers.story.decisions import measured
from perfproof.levers.story.record import Loop, Row, rows
from perfproof.schema.decisions import Ban, DoNotRetry, DraftVerdict
from perfproof.schema.levers import Fingerprint, VerdictWord
from perfproof.schema.loop import LeverRecord

# The catalog's word for each ending that bans. `inconclusive` does not: more runs may decide it.
WORDS: dict[str, VerdictWord] = {
    "rejected": "rejected",
    "loss": "rejected",
    "failed": "blocked",
    "no_op": "blocked",
    "not_comparable": "artifact",
}


def do_not_retry(loop: Loop) -> DoNotRetry:
    """Levers that must not be tried again under this loop's conditions, in the order tried."""
    made = rows(loop)
    bans = [_ban(lever, made, loop.start) for lever in loop.tried() if lever.status in WORDS]
    return DoNotRetry(model=loop.explored.spec.model, bans=bans)


def _ban(lever: LeverRecord, made: Sequence[Row], start: str) -> Ban:
    own = [row.result.measurement for row in made if row.lever == lever.id]
    against = lever.against or start
    evidence = f"{lever.status}: {lever.why} (against {against}; runs: {measured(own)})"
    draft = DraftVerdict(
        verdict=WORDS[lever.status],
        fingerprint=_conditions(lever.id, against, made),
        evidence=evidence,
    )
    return Ban(
        lever=lever.id, status=lever.status, why=lever.why, against=against, runs=own, verdict=draft
    )


def _conditions(lever: str, against: str, made: Sequence[Row]) -> Fingerprint:
    """Those of the newest run that the lever was held against.

    Its own would be the wrong ones: a lever that changes the type is banned where it is not set.
    """
    end = max((row.index for row in made if row.lever == lever), default=len(made))
    for row in reversed(made[: end + 1]):
        if row.result.measurement.trial == against and valid(row.result):
            return row.result.fingerprint
    return Fingerprint()
