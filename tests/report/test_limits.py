"""Each limit rule speaks when its fact holds and is silent when it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfproof.report.tables import profiled_step_s
from perfproof.schema.base import Reason
from perfproof.schema.traces import Finding, Table

Change = Callable[[Any, Any], None]


def _foms(**changes: Any) -> Change:
    def apply(parts: Any, make: Any) -> None:
        parts.foms = make.changed(parts.foms, **changes)

    return apply


def _integrity(**changes: Any) -> Change:
    def apply(parts: Any, make: Any) -> None:
        integrity = make.changed(parts.foms.integrity, **changes)
        parts.foms = make.changed(parts.foms, integrity=integrity.model_dump())

    return apply


def _spread(**changes: Any) -> Change:
    def apply(parts: Any, make: Any) -> None:
        spread = make.changed(parts.foms.step_time_s, **changes)
        parts.foms = make.changed(parts.foms, step_time_s=spread.model_dump())

    return apply


def _rank(**changes: Any) -> Change:
    def apply(parts: Any, make: Any) -> None:
        rank = make.changed(parts.traces.ranks[0], **changes)
        parts.traces = make.changed(parts.traces, ranks=[rank.model_dump()])

    return apply


def _traces(**changes: Any) -> Change:
    def apply(parts: Any, make: Any) -> None:
        parts.traces = make.changed(parts.traces, **changes)

    return apply


def _telemetry(**changes: Any) -> Change:
    def apply(parts: Any, make: Any) -> None:
        parts.telemetry = make.changed(parts.telemetry, **changes)

    return apply


def _finding(code: str, severity: str) -> Change:
    finding = Finding.model_validate(
        {"code": code, "severity": severity, "value": 1, "message": "m"}
    )
    return _rank(findings=[finding.model_dump()])


def _no_shapes(parts: Any, make: Any) -> None:
    parts.manifest.resolved.recipe.profile.record_shapes = False


CASES: dict[str, tuple[Change, str]] = {
    "node unknown": (_integrity(node_list=Reason.NO_MANIFEST), "The node list is unknown"),
    "recipe unknown": (_integrity(recipe_digest=Reason.NO_MANIFEST), "The recipe is not recorded"),
    "no step times": (
        _foms(step_time_s=Reason.NO_STEP_TIMES_IN_LOG, steady_step_times_s=[]),
        "Unprofiled step time is unknown: this log format does not print the time of a step.",
    ),
    "few steps": (_spread(n=6), "Only 6 steady steps"),
    "nominal batch": (
        _foms(throughput_method="nominal_batch_over_step_time"),
        "Throughput assumes the nominal batch",
    ),
    "short loss": (_foms(loss_verdict="too_short"), "The loss curve is too short or absent"),
    "no trace": (_traces(ranks=[]), "No readable profiler trace"),
    "cpu only": (
        _rank(gpu_events=0, window_kind="cpu_span"),
        "The trace has no device timeline (CPU events only)",
    ),
    "no steps marked": (_rank(window_kind="gpu_span", steps=[]), "The trace of rank 0 marks no"),
    "missing ranks": (_rank(world_size=4), "Traces cover 1 of 4 ranks: nothing is known about"),
    "few profiled steps": (_rank(steps=[5, 6, 7]), "The profiled window holds 3 steps"),
    "one profiled step": (_rank(steps=[5]), "The profiled window holds 1 step:"),
    "unlinked": (_rank(unlinked_gpu_events=90), "10.0\N{NO-BREAK SPACE}% of the GPU events have"),
    "collectives": (_rank(world_size=2), "Collectives could not be compared between ranks"),
    "shapes": (_no_shapes, "Operators carry no input shapes"),
    "bad quality": (
        _finding("dropped_events", "bad"),
        "Trace quality is bad on rank 0 (dropped_ev",
    ),
    "no telemetry": (
        _telemetry(gpus=[], file=Reason.NO_TELEMETRY),
        "No telemetry: power, clocks",
    ),
    "no steady sample": (_telemetry(gpus=[]), "Telemetry holds no sample of the steady steps:"),
    "coarse telemetry": (_telemetry(sampling_interval_s=1.0), "Telemetry samples every 1.000"),
}
ALWAYS = 3  # one run, one node, profiler slowdown: facts of the example run


def test_the_example_run_has_only_its_own_limits(parts: Any) -> None:
    limits = parts.report().limits
    assert len(limits) == ALWAYS
    assert limits[0].startswith("One run only")
    assert limits[1].startswith("One node (node-a)")
    assert limits[2].startswith("A profiled step takes 1.50 times as long")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(parts: Any, make: Any, case: str) -> None:
    change, expected = CASES[case]
    before = parts.report().limits
    change(parts, make)
    added = [limit for limit in parts.report().limits if limit not in before]
    assert any(limit.startswith(expected) for limit in added), added
    assert all(limit.endswith(".") and "\n" not in limit for limit in added)


def test_a_cpu_window_over_marked_steps_is_step_time(parts: Any, make: Any) -> None:
    _rank(gpu_events=0, window_kind="cpu_span")(parts, make)
    assert not any("marks no steps" in limit for limit in parts.report().limits)
    _rank(steps=[])(parts, make)
    assert any("marks no steps" in limit for limit in parts.report().limits)


def test_several_nodes_lift_the_scale_out_limit(parts: Any, make: Any) -> None:
    _integrity(node_list=["node-a", "node-b"])(parts, make)
    assert not any(limit.startswith("One node") for limit in parts.report().limits)


def test_compared_collectives_lift_their_limit(parts: Any, make: Any) -> None:
    ranks = [make.rank(0, world_size=2), make.rank(1, world_size=2)]
    table = Table(file="tables/collective_skew.csv", rows=2, blake3="0")
    parts.traces = make.changed(
        parts.traces,
        ranks=[rank.model_dump() for rank in ranks],
        cross_rank={"collective_skew": table.model_dump()},
    )
    limits = parts.report().limits
    assert not any("Collectives" in limit or "Traces cover" in limit for limit in limits)


def test_many_missing_ranks_are_summed_up(parts: Any, make: Any) -> None:
    _rank(world_size=512)(parts, make)
    limits = [limit for limit in parts.report().limits if "Traces cover" in limit]
    assert "511 ranks, from rank 1 on" in limits[0]


def test_profiled_step_is_the_median_of_all_ranks(tmp_path: Path, parts: Any, make: Any) -> None:
    assert profiled_step_s(tmp_path, parts.traces) is None
    ranks = []
    for rank, times in enumerate([[1e5, 3e5], [2e5, 9e5, 1e5]]):
        rows = [{"step": i, "duration_us": time} for i, time in enumerate(times)]
        table = make.table(tmp_path, f"{rank}.csv", rows)
        ranks.append(make.rank(rank, tables={"steps": table.model_dump()}).model_dump())
    assert profiled_step_s(tmp_path, make.changed(parts.traces, ranks=ranks)) == 0.2


def test_without_marked_steps_no_slowdown_is_told(parts: Any) -> None:
    parts.profiled_step_s = None
    assert not any("profiled step takes" in limit for limit in parts.report().limits)
