"""`trace_quality.json`: the numbers behind the findings, for every rank, whether bad or good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from perfproof.schema.base import Reason
from perfproof.schema.traces import Finding, RankQuality, RankTrace
from perfproof.traces.calls import graph_launches
from perfproof.traces.clock_offset import Offset
from perfproof.traces.context import Context
from perfproof.traces.csvfile import us
from perfproof.traces.durations import clipped_busy, impossible, stream_overlap
from perfproof.traces.quality import poor_graph_launches
from perfproof.traces.timeline import span

_ORDER: tuple[Literal["ok", "info", "warn", "bad"], ...] = ("ok", "info", "warn", "bad")


def measured(context: Context) -> dict[str, Any]:
    """All numbers that one trace gives by itself."""
    return _counts(context) | _steps(context) | _times(context)


def _counts(context: Context) -> dict[str, Any]:
    gpu, faults, size = context.gpu, context.trace.gpu_faults, len(context.gpu)
    graphs = graph_launches(context)
    return {
        "events": context.trace.events,
        "gpu_events": context.trace.gpu_recorded,
        "linked_to_launch": float(context.links.linked.mean()) if size else None,
        "linked_to_op": float((context.links.op >= 0).mean()) if size else None,
        "devices": [device for device in np.unique(gpu.device).tolist() if device >= 0],
        "streams": len(np.unique(gpu.stream)),
        "zero_durations": faults.zero_duration,
        "negative_durations": faults.negative_duration,
        "missing_durations": faults.no_duration,
        "missing_timestamps": faults.no_timestamp,
        "zero_timestamps": faults.zero_timestamp,
        "graph_launches": int(graphs.size),
        "graph_launches_under_recorded": poor_graph_launches(context),
        "repairs": context.trace.repairs.count(),
    }


def _steps(context: Context) -> dict[str, Any]:
    steps, numbers = context.steps, context.steps.number
    owned = steps.of(context.launched)
    lengths = steps.end - steps.start
    return {
        "steps_expected": max(numbers) - min(numbers) + 1 if numbers else None,
        "steps_recorded": len(set(numbers)),
        "steps_with_gpu_events": len({numbers[at] for at in np.unique(owned[owned >= 0]).tolist()}),
        "profiled_step_us": float(np.median(lengths)) / 1000 if numbers else None,
    }


def _times(context: Context) -> dict[str, Any]:
    flat = context.all_busy.every
    free = flat.start[1:] - flat.end[:-1]
    return {
        "same_stream_overlap_us": us(stream_overlap(context.gpu)),
        "impossible_durations": int(impossible(context.gpu).sum()),
        "busy_us": us(flat.length()),
        "busy_clipped_us": us(clipped_busy(context.gpu)),
        "span_us": us(span(context.all_busy)),
        "largest_gap_us": us(int(free.max(initial=0))),
    }


def quality_of(
    numbers: Mapping[str, Any], record: RankTrace, present: set[int], offset: Offset | None
) -> RankQuality:
    """The record of one rank; `present` are the ranks with a readable trace."""
    world = record.world_size
    here = sum(0 <= rank < (world or 0) for rank in present)
    fields = {
        **numbers,
        "rank": record.rank,
        "file": record.file,
        "worst": _worst(record.findings),
        "world_size": world,
        "ranks_missing": None if world is None else world - here,
        "clock_offset_us": offset.median_ns / 1000 if offset else None,
        "clock_offset_spread_us": offset.spread_ns / 1000 if offset else None,
        "findings": record.findings,
    }
    alone = Reason.NOT_APPLICABLE if len(present) < 2 or record.rank == min(present) else None
    why = {
        "linked_to_launch": Reason.NO_DEVICE,
        "linked_to_op": Reason.NO_DEVICE,
        "clock_offset_us": alone or Reason.NOT_RECORDED,
        "clock_offset_spread_us": alone or Reason.NOT_RECORDED,
    }
    reasons = {
        name: why.get(name, Reason.NOT_RECORDED) for name, value in fields.items() if value is None
    }
    return RankQuality(**fields, reasons=reasons)


def _worst(findings: list[Finding]) -> Literal["ok", "info", "warn", "bad"]:
    places = [_ORDER.index(finding.severity) for finding in findings]
    return _ORDER[max(places, default=0)]
