"""All logs of a run as one: times of the lowest rank, memory and losses of every rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from perfproof.foms.log import Log
from perfproof.foms.reader import read_log
from perfproof.schema.base import Problem
from perfproof.schema.run import Inventory, Role


@dataclass
class RunLog:
    """The log whose steps and epochs count, enriched from the others; None without any."""

    log: Log | None = None
    where: str = ""
    problems: list[Problem] = field(default_factory=list)


def read_logs(inventory: Inventory) -> RunLog:
    """Read every log once, lowest rank first, logs of no particular rank last."""
    run, non_finite = RunLog(), {True: 0, False: 0}
    for artifact in inventory.of(Role.LOG):
        try:
            log = read_log(Path(inventory.root) / artifact.path)
        except OSError as fault:
            run.problems.append(_unreadable(artifact.path, fault))
            continue
        run.problems += [Problem(where=artifact.path, what=fault) for fault in log.faults]
        # A merged log repeats what the ranks' own logs say: never add the two.
        if artifact.rank is None:
            non_finite[False] = max(non_finite[False], log.non_finite)
        else:
            non_finite[True] += log.non_finite
        _take(run, log, artifact.path, ranked=artifact.rank is not None)
    if run.log is not None:
        run.log.non_finite = max(non_finite.values())
    return run


def _unreadable(where: str, fault: OSError) -> Problem:
    return Problem(where=where, what=f"cannot be read ({fault.strerror}); expected a log")


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
    run.log.seen_ranks = max(run.log.seen_ranks, log.seen_ranks)
    run.log.dtype = run.log.dtype or log.dtype
    run.log.profiled_epochs |= log.profiled_epochs


def _timed(log: Log) -> int:
    """2: has steps or bars; 1: has other lines of training; 0: has none."""
    return 2 if log.tables or any(bar.kind == "end" for bar in log.bars) else log.has_training()
