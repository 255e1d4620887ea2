"""Integrity: what must be equal before one run may be held against another.

A field that is null in every run is not a difference: most of them describe, and an older run
recorded less. But amounts of work must be known before two times or rates mean the same. So of each
group below at least one field must be known in the runs, else each side may have done other work
and the group is listed as `unknown on both sides`. To allow any field of a group vouches for it.

- The number of ranks, and the batch (nominal or realised), for every metric.
- The length of an epoch (batches or samples), for times: a time says nothing of the share of
  partial steps, and an epoch's time nothing without its samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from perfproof.schema.foms import Foms, LossVerdict

# Reserved memory moves a little with the order of allocations; more than this is another problem
# size. Shares of partial steps may differ by the rounding of a few steps.
HBM_TOLERANCE = 0.05
PARTIAL_TOLERANCE = 0.01

Same = Callable[[Any, Any], bool]


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _same_set(a: Any, b: Any) -> bool:
    return set(a) == set(b)


def _near(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=HBM_TOLERANCE)


def _close_share(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= PARTIAL_TOLERANCE)


@dataclass(frozen=True)
class Check:
    """One integrity field: its value in a run, and when two values agree."""

    value: Callable[[Foms], Any]
    same: Same = _equal
    within_side: bool = False  # must agree among repetitions, may differ between the sides
    metric: str | None = None  # only for this metric, and then null counts as a difference


def _integrity(name: str) -> Callable[[Foms], Any]:
    return lambda foms: getattr(foms.integrity, name)


CHECKS: dict[str, Check] = {
    "model": Check(_integrity("model")),
    "workload": Check(_integrity("workload")),
    "cluster": Check(_integrity("cluster")),
    "ranks": Check(_integrity("ranks")),
    "nominal_batch_per_rank": Check(_integrity("nominal_batch_per_rank")),
    "realised_batches_per_rank": Check(_integrity("realised_batches_per_rank")),
    "batches_per_epoch": Check(_integrity("batches_per_epoch")),
    "samples_per_epoch": Check(_integrity("samples_per_epoch")),
    "partial_step_fraction": Check(_integrity("partial_step_fraction"), _close_share),
    "dtype": Check(_integrity("dtype")),
    "step_time_source": Check(_integrity("step_time_source")),
    "node_list": Check(_integrity("node_list"), _same_set),
    "device_name": Check(_integrity("device_name")),
    "hbm_reserved_bytes": Check(_integrity("hbm_reserved_bytes"), _near),
    "throughput_method": Check(lambda f: f.throughput_method, metric="throughput_samples_per_s"),
    "recipe_digest": Check(_integrity("recipe_digest"), within_side=True),
}

_WORK = (("ranks",), ("nominal_batch_per_rank", "realised_batches_per_rank"))
_WORK_OF_TIMES = (("batches_per_epoch", "samples_per_epoch"),)
_TIMES = frozenset({"step_time_s", "epoch_time_s"})

# A run with a NaN is compared with nothing, not even with another one.
NON_FINITE = "loss_verdict"
FIELDS = (*CHECKS, NON_FINITE)


def differences(
    a: Sequence[Foms], b: Sequence[Foms], metric: str, allow: frozenset[str]
) -> list[str]:
    """Fields that differ within or between the sides, one line each with the values."""
    lines = []
    for name, check in CHECKS.items():
        if name not in allow | {metric} and check.metric in (None, metric):
            lines += _differs_within(name, check, "a", a) + _differs_within(name, check, "b", b)
            if not check.within_side:
                lines += _differs(name, check, a[0], b[0], ("a", "b"))
    lines += _unknown_work([*a, *b], metric, allow)
    if NON_FINITE not in allow:
        lines += [*_non_finite("a", a), *_non_finite("b", b)]
    return lines


def _unknown_work(runs: Sequence[Foms], metric: str, allow: frozenset[str]) -> list[str]:
    """Groups of fields of which no run knows any, one line each."""
    groups = _WORK + (_WORK_OF_TIMES if metric in _TIMES else ())
    lines = []
    for group in groups:
        values = [CHECKS[name].value(run) for name in group for run in runs]
        if allow.isdisjoint(group) and all(value is None for value in values):
            also = f" (like {', '.join(group[1:])})" if group[1:] else ""
            lines.append(f"{group[0]}: unknown on both sides{also}")
    return lines


def _differs_within(name: str, check: Check, side: str, runs: Sequence[Foms]) -> list[str]:
    for number, run in enumerate(runs[1:], start=2):
        if lines := _differs(name, check, runs[0], run, (f"{side}1", f"{side}{number}")):
            return lines
    return []


def _differs(name: str, check: Check, a: Foms, b: Foms, labels: tuple[str, str]) -> list[str]:
    """Null on both sides is unknown, not a difference; on one side it is one."""
    one, two = check.value(a), check.value(b)
    if one is None or two is None:
        agree = one is None and two is None and check.metric is None
    else:
        agree = check.same(one, two)
    if agree:
        return []
    return [f"{name}: {labels[0]} {_shown(one)}, {labels[1]} {_shown(two)}"]


def _non_finite(side: str, runs: Sequence[Foms]) -> list[str]:
    bad = [run for run in runs if run.loss_verdict is LossVerdict.NON_FINITE]
    if not bad:
        return []
    count = sum(run.non_finite_count or 0 for run in bad)
    return [f"{NON_FINITE}: {side} has {count} non-finite losses in {len(bad)} of {len(runs)} runs"]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value) or "none"
    return "null" if value is None else str(value)
