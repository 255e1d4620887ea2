"""All logs of a run as one: times of the lowest rank, memory and losses of every rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from perfproof.foms.log import Log
from perfproof.foms.raw import changed, changed_problem, unlike
from perfproof.foms.reader import read_log
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Artifact, Inventory, Role


@dataclass
class RunLog:
    """The log whose steps and epochs count, enriched from the others; None with the reason."""

    log: Log | None = None
    where: str = ""
    missing: Reason = Reason.NO_LOG
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, where: str = "", what: str = "") -> None:
        """No figure can be had: the logs are not those of one run. `what` is a problem line."""
        self.log, self.missing = None, Reason.DISAGREES
        if what:
            self.problems.append(Problem(where=where, what=what))


def read_logs(inventory: Inventory) -> RunLog:
    """Read every log once, lowest rank first, logs of no particular rank last."""
    run, non_finite = RunLog(), {True: 0, False: 0}
    listed = unlike(inventory.of(Role.LOG))
    if twice := _several_runs(listed):
        run.refuse(twice, "logs of several runs; expected one log a rank, of one run")
        return run
    for artifact in listed:
        log = _read(artifact, inventory, run)
        if log is None:
            continue
        # A merged log repeats what the ranks' own logs say: never add the two.
        if artifact.rank is None:
            non_finite[False] = max(non_finite[False], log.non_finite)
        else:
            non_finite[True] += log.non_finite
        _take(run, log, artifact.path, ranked=artifact.rank is not None)
    if run.log is not None:
        run.log.non_finite = max(non_finite.values())
        _refuse_several_trainers(run, run.log)
    return run


def _several_runs(logs: Sequence[Artifact]) -> str:
    """Logs that claim the same rank, or the same name in another folder; empty without any."""
    first: dict[int | str, str] = {}
    for log in logs:
        path = log.path
        claim = PurePosixPath(path).name if log.rank is None else log.rank
        if claim in first:
            return f"{first[claim]} and {path}"
        first[claim] = path
    return ""


def _read(artifact: Artifact, inventory: Inventory, run: RunLog) -> Log | None:
    """The log, if it can be read and is the one that the inventory lists."""
    try:
        if changed(artifact, inventory):
            run.missing = Reason.UNREADABLE
            run.problems.append(changed_problem(artifact))
            return None
        log = read_log(Path(inventory.root) / artifact.path)
    except OSError as fault:
        what = f"cannot be read ({fault.strerror}); expected a log"
        run.problems.append(Problem(where=artifact.path, what=what))
        return None
    run.problems += [Problem(where=artifact.path, what=fault) for fault in log.faults]
    return log


def _refuse_several_trainers(run: RunLog, log: Log) -> None:
    if len(log.trainers) > 1:
        found = " and ".join(sorted(log.trainers))
        run.refuse(run.where, f"steps or epochs of {found}; expected one trainer's, so one run")


def _take(run: RunLog, log: Log, where: str, ranked: bool) -> None:
    """Let `log` be the run's log if it says more about time, and keep what only the other knows."""
    if run.log is None or _timed(log) > _timed(run.log):
        log, run.log, run.where = run.log or Log(), log, where
    elif ranked:
        for source in run.log.tables.keys() & log.tables.keys():
            run.log.tables[source].add_sizes_of(log.tables[source])
    if log.reserved_bytes is not None:
        run.log.add_reserved(log.reserved_bytes)
    run.log.ranks = run.log.ranks or log.ranks
    run.log.data_ranks = run.log.data_ranks or log.data_ranks
    run.log.rank_lines.update(log.rank_lines)
    run.log.dtype = run.log.dtype or log.dtype
    run.log.profiled_epochs |= log.profiled_epochs
    run.log.trainers |= log.trainers


def _timed(log: Log) -> int:
    """2: has steps or bars; 1: has other lines of training; 0: has none."""
    return 2 if log.tables or any(bar.kind == "end" for bar in log.bars) else log.has_training()
