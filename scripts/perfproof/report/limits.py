"""What the data cannot show: rules over the inputs, each giving one plain sentence or nothing."""

from __future__ import annotations

from collections.abc import Callable

from perfproof.report import limits_run as of_run
from perfproof.report import limits_trace as of_trace
from perfproof.report.facts import Facts

RULES: tuple[Callable[[Facts], str | None], ...] = (
    of_run.one_run,
    of_run.nodes,
    of_run.no_manifest,
    of_run.no_steady_steps,
    of_run.few_steps,
    of_run.nominal_batch,
    of_run.short_loss,
    of_trace.no_trace,
    of_trace.cpu_only,
    of_trace.no_step_annotations,
    of_trace.missing_ranks,
    of_trace.profiler_slowdown,
    of_trace.few_profiled_steps,
    of_trace.unlinked_events,
    of_trace.no_collective_comparison,
    of_trace.no_shapes,
    of_trace.bad_findings,
    of_run.no_telemetry,
    of_run.coarse_telemetry,
)


def limits(facts: Facts) -> list[str]:
    """The sentences of all rules that apply, in the order of `RULES`."""
    return [sentence for rule in RULES if (sentence := rule(facts))]
