"""A loop as its files tell it: where exploring ended, the confirmation, and what each run was for.

A step file holds all runs in order, not what each was for. That follows from the counts: every run
that ended by itself or by its trial's fault was told to the lever under test, which counted it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfproof.core.config import read_catalog
from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.schema.levers import Lever, LeverCatalog
from perfproof.schema.loop import LeverRecord, LoopState, Result

BASELINE = "baseline"
Role = Literal["baseline", "best", "candidate", "confirmation"]
ROLES: tuple[Role, ...] = ("baseline", "best", "candidate", "confirmation")


@dataclass(frozen=True)
class Row:
    """One run: its place in the loop, the lever it was made for, its part in the comparison."""

    index: int
    result: Result
    role: Role
    lever: str | None


@dataclass(frozen=True)
class Loop:
    """Where a loop ended. `ending` labels why; `catalog` says what its levers change."""

    explored: LoopState
    confirmed: LoopState | None
    ending: str
    catalog: LeverCatalog | None = None

    @property
    def last(self) -> LoopState:
        """The newest state: it holds all runs."""
        return self.confirmed or self.explored

    @property
    def start(self) -> str:
        """The trial that the loop began with: its baseline."""
        return self.explored.spec.start

    def lever(self, name: str) -> Lever | None:
        """The catalog's entry of a lever."""
        levers = self.catalog.levers if self.catalog else []
        return next((lever for lever in levers if lever.id == name), None)

    def tried(self) -> list[LeverRecord]:
        """Levers that were taken from the queue, in that order."""
        taken = [record for record in self.explored.levers if record.order is not None]
        return sorted(taken, key=lambda record: record.order or 0)

    def path(self) -> list[str]:
        """Trials from the baseline to the best recipe."""
        accepted = [record.trial for record in self.tried() if record.status == "accepted"]
        return [self.start, *(trial for trial in accepted if trial)]


def read_loop(
    explored: Path, confirmed: Path | None, ending: str, catalog: Path | None = None
) -> Loop:
    """Read the last step of exploring and of the confirmation, and check that they are one loop."""
    first = read_record(explored, LoopState)
    then = read_record(confirmed, LoopState) if confirmed else None
    levers = read_catalog(catalog) if catalog else None
    if then and confirmed and not _continues(first, then):
        expected = f"the confirmation that began after {explored}"
        raise InputError(confirmed, "a step of another loop, or of another ending", expected)
    return Loop(first, then, ending, levers)


def _continues(first: LoopState, then: LoopState) -> bool:
    made = len(first.results)
    return (
        then.spec == first.spec and then.best == first.best and then.results[:made] == first.results
    )


def rows(loop: Loop) -> list[Row]:
    """Every run in order with what it was for."""
    made = len(loop.explored.results)
    owners = _owners(loop)
    found = [
        _row(index, result, next(owners)) for index, result in enumerate(loop.explored.results)
    ]
    for index, result in enumerate(loop.last.results[made:], start=made):
        found.append(Row(index, result, "confirmation", None))
    return found


def _row(index: int, result: Result, owner: LeverRecord | None) -> Row:
    if owner is None:
        return Row(index, result, "baseline", None)
    role: Role = "best" if result.measurement.trial == owner.against else "candidate"
    return Row(index, result, role, owner.id)


def _owners(loop: Loop) -> Iterator[LeverRecord | None]:
    """The lever's record (None: the baseline's own repetitions) of each run of exploring.

    A run lost to the infrastructure counts for nothing and is asked for again at once: it belongs
    to what the next counted run belongs to.
    """
    tried, results = loop.tried(), loop.explored.results
    counted = sum(result.ending != "infrastructure" for result in results)
    owners: list[LeverRecord | None] = [None] * (counted - sum(r.runs for r in tried))
    for record in tried:
        owners += [record] * record.runs
    open_one = next((record for record in tried if record.status == "testing"), None)
    owners.append(open_one or (owners[-1] if owners else None))
    told = 0
    for result in results:
        yield owners[told]
        told += result.ending != "infrastructure"
