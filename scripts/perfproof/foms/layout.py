"""Ranks and nominal batch of a run, agreed between the sources that state them."""

from __future__ import annotations

from dataclasses import dataclass

from perfproof.foms.known import Known
from perfproof.foms.log import Log
from perfproof.foms.sources import Sources
from perfproof.schema.base import Reason
from perfproof.schema.traces import TraceSummary


@dataclass(frozen=True)
class Layout:
    """How many processes there were, and how many of them took a batch of their own."""

    ranks: Known[int]
    data_ranks: Known[int]
    batch_size: Known[int]
    conflicts: tuple[str, ...] = ()


def layout_of(log: Log | None, sources: Sources, traces: TraceSummary | None) -> Layout:
    """Ranks as realised (log, rank 0's report, traces, launch record), else as asked for."""
    log = log or Log()
    rank0 = sources.manifest.rank0 if sources.manifest else None
    resolved = sources.manifest.resolved if sources.manifest else None
    worlds = {rank.world_size for rank in traces.ranks if rank.world_size} if traces else set()
    ranks, rank_conflict = _agreed(
        "ranks",
        {
            "log": log.ranks,
            "manifest": rank0.world_size if rank0 else None,
            "trace": worlds.pop() if len(worlds) == 1 else None,
            "meta": sources.meta_ranks,
        },
        resolved.ranks if resolved else None,
        sources.config_ranks,
        log.seen_ranks if log.seen_ranks > 1 else None,
        unknown=Reason.RANKS_UNKNOWN,
    )
    batch, batch_conflict = _agreed(
        "samples a rank a step",
        {"config": sources.batch_size, "log": log.batch_size},
        resolved.recipe.training.batch_size if resolved else None,
        unknown=Reason.BATCH_UNKNOWN,
    )
    data_ranks = ranks if isinstance(ranks, Reason) else _data_ranks(ranks, log, sources)
    return Layout(ranks, data_ranks, batch, (*rank_conflict, *batch_conflict))


def _agreed(
    what: str, stated: dict[str, int | None], *fallbacks: int | None, unknown: Reason
) -> tuple[Known[int], tuple[str, ...]]:
    """The value that all sources state; a fallback counts only where none states it."""
    known = {source: value for source, value in stated.items() if value is not None}
    if len(set(known.values())) > 1:
        shown = ", ".join(f"{value} ({source})" for source, value in sorted(known.items()))
        return Reason.DISAGREES, (f"{what}: {shown}; expected one value",)
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
