"""What a metric is: the types of the closed vocabulary that claims are written in.

Analysts and verifiers share these types and the definitions in `metrics_trace` and
`metrics_telemetry`. That is data: no number is computed here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from perfproof.schema.claims import BottleneckClass, Source


class ShareRule(StrEnum):
    """How a metric's value bounds the share of step time that a fix could give back."""

    VALUE = "value"
    HOST = "min(value, gpu_idle_fraction)"
    DISPATCH = "value - dataloader_gpu_idle_fraction"
    COMPLEMENT = "1 - value"
    NONE = "none"


SHARE_MEANING: dict[ShareRule, str] = {
    ShareRule.VALUE: "the value itself: a fix cannot save more than the whole of that time",
    ShareRule.HOST: "the value, but no more than the time the GPU is idle: the GPU's own work sets "
    "a floor that no host-side fix can pass (a CPU-only trace has no such floor)",
    ShareRule.DISPATCH: "the value without the idle time in which the training thread waits "
    "for the data loader: launching faster brings no data sooner",
    ShareRule.COMPLEMENT: "what is missing to a fully used GPU",
    ShareRule.NONE: "null: it explains another claim and is no amount of time",
}


@dataclass(frozen=True)
class Param:
    """One parameter of a metric."""

    name: str
    kind: Literal["str", "int", "float", "regex"]
    meaning: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClassRule:
    """Which bottleneck class a claim has: one class, or one per value of a parameter."""

    by: str | None
    classes: dict[str, BottleneckClass]
    default: BottleneckClass | None = None

    def of(self, params: dict[str, Any]) -> BottleneckClass | None:
        """The class of a claim with these `params`; None where the vocabulary has none."""
        key = "" if self.by is None else str(params.get(self.by))
        return self.classes.get(key, self.default)


def always(bottleneck: BottleneckClass) -> ClassRule:
    """The rule of a metric with one class."""
    return ClassRule(None, {"": bottleneck})


@dataclass(frozen=True)
class Metric:
    """One word of the vocabulary."""

    name: str
    source: Source
    unit: str
    scope: Literal["rank", "gpu", "run"]
    definition: str
    formula: str
    table: str
    class_rule: ClassRule
    share: ShareRule
    absolute: float
    relative: float
    params: tuple[Param, ...] = field(default=())

    def tolerance(self, value: float) -> float:
        """Largest accepted distance between a claim and the recomputed `value`."""
        return self.absolute + self.relative * abs(value)
