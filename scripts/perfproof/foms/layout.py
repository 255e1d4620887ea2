"""Ranks and nominal batch of a run, agreed between the sources that state them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from perfproof.foms.known import Known
from perfproof.foms.log import Log
from perfproof.foms.sources import Sources
from perfproof.schema.base import Reason
from perfproof.schema.traces import TraceSummary

# A rank in so few step lines, as a share of the most that a rank has, is a damaged line.
STRAY_SHARE = 0.01
# Ranks of a synchronous job print about as often as each other, and more than a few lines.
LEAST_SHARE = 1 / 3
LEAST_LINES = 8


@dataclass(frozen=True)
class Layout:
    """How many processes there were, and how many of them took a batch of their own."""

    ranks: Known[int]
    data_ranks: Known[int]
    batch_size: Known[int]
    remarks: tuple[str, ...] = ()  # contradictions, and what was inferred


def layout_of(log: Log | None, sources: Sources, traces: TraceSummary | None) -> Layout:
    """Ranks as realised (log, rank 0's report, traces, launch record), else as asked for."""
    log = log or Log()
    rank0 = sources.manifest.rank0 if sources.manifest else None
    resolved = sources.manifest.resolved if sources.manifest else None
    worlds = {rank.world_size for rank in traces.ranks if rank.world_size} if traces else set()
    ranks, remarks = _agreed(
        "ranks",
        {
            "log": log.ranks,
            "manifest": rank0.world_size if rank0 else None,
            "trace": worlds.pop() if len(worlds) == 1 else None,
            "meta": sources.meta_ranks,
        },
        "meta_ranks" in sources.contradicted,
        resolved.ranks if resolved else None,
        sources.config_ranks,
        unknown=Reason.RANKS_UNKNOWN,
    )
    if ranks is Reason.RANKS_UNKNOWN and (seen := _seen_ranks(log.rank_lines)):
        ranks = seen
        remarks = (f"ranks: {seen}, inferred from the step lines; expected a header or a record",)
    batch, batch_remarks = _agreed(
        "samples a rank a step",
        {
            "config": sources.batch_size,
            "log": log.batch_size,
            "manifest": resolved.recipe.training.batch_size if resolved else None,
        },
        "batch_size" in sources.contradicted,
        unknown=Reason.BATCH_UNKNOWN,
    )
    data_ranks = ranks if isinstance(ranks, Reason) else _data_ranks(ranks, log, sources)
    return Layout(ranks, data_ranks, batch, (*remarks, *batch_remarks))


def _seen_ranks(lines: Counter[int]) -> int | None:
    """Number of ranks where step lines of each of 0 … n - 1 were seen, and many of them."""
    most = max(lines.values(), default=0)
    seen = [rank for rank, count in lines.items() if count > max(1, STRAY_SHARE * most)]
    least = max(LEAST_LINES, LEAST_SHARE * most)
    whole = sorted(seen) == list(range(len(seen))) and all(lines[rank] >= least for rank in seen)
    return len(seen) if whole and len(seen) > 1 else None


def _agreed(
    what: str,
    stated: dict[str, int | None],
    contradicted: bool,
    *fallbacks: int | None,
    unknown: Reason,
) -> tuple[Known[int], tuple[str, ...]]:
    """The value that all sources state; a fallback counts only where none states it.

    `contradicted`: a source contradicts itself, which has its own problem line.
    """
    known = {source: value for source, value in stated.items() if value is not None}
    if len(set(known.values())) > 1:
        shown = ", ".join(f"{value} ({source})" for source, value in sorted(known.items()))
        return Reason.DISAGREES, (f"{what}: {shown}; expected one value",)
    if contradicted:
        return Reason.DISAGREES, ()
    values = [*known.values(), *(value for value in fallbacks if value is not None)]
    return (values[0] if values else unknown), ()


def _data_ranks(ranks: int, log: Log, sources: Sources) -> int:
    """Ranks with a batch of their own: tensor- and sequence-parallel ones share one."""
    if log.data_ranks:
        return log.data_ranks
    if sources.config_data_ranks and sources.config_ranks == ranks:
        return sources.config_data_ranks
    if sources.manifest:
        return max(1, ranks // sources.manifest.resolved.recipe.parallel.tensor_par)
    return ranks
