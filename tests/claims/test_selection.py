"""Choosing claims: thresholds on cost, limits per metric, every class represented."""

from __future__ import annotations

import pytest

from perfproof.claims.candidates import Candidate, Idle
from perfproof.claims.metrics import METRICS
from perfproof.claims.rules import MOST_CLAIMS, TELEMETRY_RULES, TRACE_RULES
from perfproof.claims.selection import choose
from perfproof.schema.claims import Evidence, Source


def candidate(metric: str, value: float, rank: int = 0, **params: object) -> Candidate:
    return Candidate(metric, rank, value, "is", Evidence(file="f", where="w"), dict(params))


def test_every_metric_has_a_rule_with_its_reason() -> None:
    for source, rules in ((Source.TRACE, TRACE_RULES), (Source.TELEMETRY, TELEMETRY_RULES)):
        assert set(rules) == {m.name for m in METRICS.values() if m.source is source}
        assert all(rule.why for rule in rules.values())
        assert all(rule.needs is None or rule.needs in rules for rule in rules.values())


def test_thresholds_apply_to_the_share() -> None:
    """Half of the time in a call means little when the GPU idles one percent."""
    call = candidate("runtime_call_fraction", 0.5, call="cudaFree")
    assert choose([call], TRACE_RULES, {0: Idle(0.01, 0)}) == []
    (choice,) = choose([call], TRACE_RULES, {0: Idle(0.4, 0)})
    assert choice.share == 0.4


def test_waiting_for_data_is_not_charged_to_dispatch() -> None:
    idle = candidate("gpu_idle_fraction", 0.5)
    (choice,) = choose([idle], TRACE_RULES, {0: Idle(0.5, 0.3)})
    assert choice.share == pytest.approx(0.2)
    assert choose([idle], TRACE_RULES, {0: Idle(0.5, 0.49)}) == []


def test_no_class_is_crowded_out() -> None:
    many = [candidate("top_kernel_fraction", 0.5, kernel=f"k{n}", group="gemm") for n in range(9)]
    many += [
        candidate("kernel_group_fraction", 0.4, group=f"g{n}", name_regex="", not_regex="")
        for n in range(9)
    ]
    many += [candidate("cpu_op_self_fraction", 0.3, op=f"op{n}") for n in range(9)]
    many += [candidate("runtime_call_fraction", 0.2, call=f"c{n}") for n in range(9)]
    many += [candidate("dataloader_gpu_idle_fraction", 0.011)]
    chosen = choose(many, TRACE_RULES, {0: Idle(0.9, 0)})
    assert len(chosen) == MOST_CLAIMS
    assert chosen[-1].candidate.metric == "dataloader_gpu_idle_fraction"
    shares = [choice.share or 0 for choice in chosen]
    assert shares == sorted(shares, reverse=True)


def test_the_order_of_candidates_does_not_matter() -> None:
    some = [candidate("top_kernel_fraction", 0.2, rank, kernel=k, group="gemm")
            for rank in (0, 1) for k in ("a", "b", "c", "d")]  # fmt: skip
    assert choose(some, TRACE_RULES, {}) == choose(some[::-1], TRACE_RULES, {})
    assert [c.candidate.params["kernel"] for c in choose(some, TRACE_RULES, {})] == ["a", "b", "c"]
    assert {c.candidate.rank for c in choose(some, TRACE_RULES, {})} == {0}


@pytest.mark.parametrize(("values", "gpu"), [((0.3, 0.5), 0), ((0.9, 0.2), 1)])
def test_the_gpu_that_idles_most_is_the_worst(values: tuple[float, float], gpu: int) -> None:
    some = [candidate("gpu_utilization_mean", v, n, gpu=n) for n, v in enumerate(values)]
    (choice,) = choose(some, TELEMETRY_RULES, {})
    assert (choice.candidate.rank, choice.compared, choice.extreme) == (gpu, 2, "lowest")
    assert choice.share == pytest.approx(1 - min(values))
