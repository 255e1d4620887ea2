"""Limits that come from the profiler traces."""

from __future__ import annotations

import itertools

from perfproof.report.facts import FEW_STEPS, Facts, window_is_steps
from perfproof.report.units import number, percent, quantity


def no_trace(facts: Facts) -> str | None:
    """No trace, no attribution."""
    if facts.traces.ranks:
        return None
    return "No readable profiler trace: where the step goes is unknown."


def cpu_only(facts: Facts) -> str | None:
    """A CPU trace has no device timeline."""
    if not facts.traces.ranks or facts.device_ranks:
        return None
    return (
        "The trace has no device timeline (CPU events only): GPU busy, idle and communication "
        "time cannot be shown."
    )


def no_step_annotations(facts: Facts) -> str | None:
    """Without annotations the window is a span of events, with whatever surrounds the steps."""
    ranks = [rank.rank for rank in facts.traces.ranks if not window_is_steps(rank)]
    if not ranks:
        return None
    return (
        f"The trace of {_ranks(ranks)} marks no steps that can be used: shares are of the traced "
        "span, not of step time."
    )


def missing_ranks(facts: Facts) -> str | None:
    """A straggler without a trace is invisible."""
    traced = {rank.rank for rank in facts.traces.ranks}
    total = facts.world_size
    covered = sum(rank < total for rank in traced)
    if not traced or covered >= total:
        return None
    count = total - covered
    # Not listed to the end: a damaged file may claim any number of ranks.
    untraced = (rank for rank in itertools.count() if rank not in traced)
    absent = list(itertools.islice(untraced, min(count, 8)))
    named = _ranks(absent) if count <= 8 else f"{count} ranks, from rank {absent[0]} on"
    return (
        f"Traces cover {covered} of {total} ranks: nothing is known about {named}, "
        "one of which may be the slow one."
    )


def profiler_slowdown(facts: Facts) -> str | None:
    """Shares come from profiled steps, figures of merit from unprofiled ones."""
    profiled, spread = facts.profiled_step_s, facts.foms.step_time_s
    if profiled is None or spread is None:
        return None
    return (
        f"A profiled step takes {number(profiled / spread.median, 3)} times as long as an "
        f"unprofiled one (medians {quantity(profiled, 's')} and {quantity(spread.median, 's')}): "
        "shares hold for profiled steps."
    )


def few_profiled_steps(facts: Facts) -> str | None:
    """A window of some steps out of many."""
    counts = {len(rank.steps) for rank in facts.traces.ranks if rank.steps}
    if not counts or min(counts) >= FEW_STEPS:
        return None
    count = min(counts)
    steps = "1 step" if count == 1 else f"{count} steps"
    return f"The profiled window holds {steps}: rare events may lie outside it."


def unlinked_events(facts: Facts) -> str | None:
    """A GPU event without launch counts as busy time but names no step for certain."""
    total = sum(rank.gpu_events for rank in facts.traces.ranks)
    unlinked = sum(rank.unlinked_gpu_events for rank in facts.traces.ranks)
    if not unlinked:
        return None
    return (
        f"{percent(unlinked / total)} of the GPU events have no recorded launch: they count as "
        "busy time, but belong to a step by their own start only."
    )


def no_collective_comparison(facts: Facts) -> str | None:
    """Waiting and transfer look the same from one rank."""
    compared = "collective_skew" in facts.traces.cross_rank
    if facts.world_size < 2 or not facts.device_ranks or compared:
        return None
    return (
        "Collectives could not be compared between ranks: time spent in them may be transfer or "
        "waiting for a slower rank."
    )


def no_shapes(facts: Facts) -> str | None:
    """Operator costs need input shapes."""
    if not facts.traces.ranks or facts.record_shapes is not False:
        return None
    return "Operators carry no input shapes: nothing here says how near a kernel is to the peak."


def bad_findings(facts: Facts) -> str | None:
    """Bad trace quality limits every share; details stand under data quality."""
    found = [
        (finding.code, rank.rank)
        for rank in facts.traces.ranks
        for finding in rank.findings
        if finding.severity == "bad"
    ]
    if not found:
        return None
    codes = ", ".join(sorted({code for code, _ in found}))
    ranks = _ranks(sorted({rank for _, rank in found}))
    return f"Trace quality is bad on {ranks} ({codes}): shares from there may be wrong."


def _ranks(ranks: list[int]) -> str:
    """`rank 3`, `ranks 1, 2, 5` or, beyond eight, their number and ends."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 8:
        return f"{len(ranks)} ranks ({ranks[0]} to {ranks[-1]})"
    return "ranks " + ", ".join(str(rank) for rank in ranks)
