"""Choosing claims: thresholds on cost, limits per metric, every class represented."""

from __future__ import annotations

import pytest

from perfproof.claims.candidates import Candidate
from perfproof.claims.metrics import METRICS
from perfproof.claims.rules import MOST_CLAIMS, TELEMETRY_RULES, TRACE_RULES
from perfproof.claims.selection import choose
from perfproof.schema.claims import Evidence, Source

SAME = -1.0


def candidate(
    metric: str, value: float, rank: int = 0, share: float | None = SAME, **params: object
) -> Candidate:
    share = value if share == SAME else share
    evidence = [Evidence(file="f", where="w")]
    return Candidate(metric, rank, value, share, "is", evidence, dict(params))


def test_every_metric_has_a_rule_with_its_reason() -> None:
    for source, rules in ((Source.TRACE, TRACE_RULES), (Source.TELEMETRY, TELEMETRY_RULES)):
        assert set(rules) == {m.name for m in METRICS.values() if m.source is source}
        assert all(rule.why for rule in rules.values())
        assert all(rule.needs is None or rule.needs in rules for rule in rules.values())


def test_thresholds_apply_to_the_share() -> None:
    """Half of the time in a call means little when the GPU idles one percent meanwhile."""
    waiting = candidate("runtime_call_fraction", 0.5, share=0.01, call="c")
    assert choose([waiting], TRACE_RULES) == []
    call = candidate("runtime_call_fraction", 0.5, share=0.4, call="c")
    (choice,) = choose([call], TRACE_RULES)
    assert choice.share == 0.4


def test_the_rank_with_most_to_gain_is_not_called_the_highest_when_it_is_not() -> None:
    group = {"group": "gemm", "name_regex": "", "not_regex": ""}
    hidden = candidate("kernel_group_fraction", 0.9, 0, share=0.3, **group)
    alone = candidate("kernel_group_fraction", 0.8, 1, share=0.7, **group)
    (choice,) = choose([hidden, alone], TRACE_RULES)
    assert (choice.candidate.rank, choice.extreme) == (1, "largest share")
    (choice,) = choose([alone, candidate("kernel_group_fraction", 0.1, 0, **group)], TRACE_RULES)
    assert (choice.candidate.rank, choice.extreme) == (1, "highest")


def test_no_class_is_crowded_out() -> None:
    many = [candidate("top_kernel_fraction", 0.5, kernel=f"k{n}", group="gemm") for n in range(9)]
    many += [
        candidate("kernel_group_fraction", 0.4, group=f"g{n}", name_regex="", not_regex="")
        for n in range(9)
    ]
    many += [candidate("cpu_op_self_fraction", 0.3, op=f"op{n}") for n in range(9)]
    many += [candidate("runtime_call_fraction", 0.2, call=f"c{n}") for n in range(9)]
    many += [candidate("dataloader_gpu_idle_fraction", 0.011)]
    chosen = choose(many, TRACE_RULES)
    assert len(chosen) == MOST_CLAIMS
    assert chosen[-1].candidate.metric == "dataloader_gpu_idle_fraction"
    shares = [choice.share or 0 for choice in chosen]
    assert shares == sorted(shares, reverse=True)


def test_the_order_of_candidates_does_not_matter() -> None:
    some = [candidate("top_kernel_fraction", 0.2, rank, kernel=k, group="gemm")
            for rank in (0, 1) for k in ("a", "b", "c", "d")]  # fmt: skip
    assert choose(some, TRACE_RULES) == choose(some[::-1], TRACE_RULES)
    assert [c.candidate.params["kernel"] for c in choose(some, TRACE_RULES)] == ["a", "b", "c"]
    assert {c.candidate.rank for c in choose(some, TRACE_RULES)} == {0}


@pytest.mark.parametrize(("values", "gpu"), [((0.3, 0.5), 0), ((0.9, 0.2), 1)])
def test_the_gpu_that_idles_most_is_the_worst(values: tuple[float, float], gpu: int) -> None:
    some = [
        candidate("gpu_utilization_mean", value, number, share=1 - value, gpu=number)
        for number, value in enumerate(values)
    ]
    (choice,) = choose(some, TELEMETRY_RULES)
    assert (choice.candidate.rank, choice.compared, choice.extreme) == (gpu, 2, "lowest")
    assert choice.share == pytest.approx(1 - min(values))
