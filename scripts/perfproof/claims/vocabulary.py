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
    """Which part of a metric's time bounds the share of step time that a fix could give back."""

    ALONE = "the part in which no other GPU event runs"
    IDLE = "the part in which no GPU event runs and the training thread is not in the data loader"
    LOADER = "the part in which no GPU event runs"
    COMPLEMENT = "1 - value"
    NONE = "none"


SHARE_MEANING: dict[ShareRule, str] = {
    ShareRule.ALONE: "what runs beside it takes its time all the same",
    ShareRule.IDLE: "while the GPU works, the host holds nothing up; idle time in the data loader "
    "is the loader's, and launching faster brings no data sooner. A CPU-only trace has no such "
    "floor: there it is the value. Idle time that follows a call, until the host has queued work "
    "again, is dispatch",
    ShareRule.LOADER: "the loader holds up nothing while the GPU works. On a CPU-only trace it is "
    "the value",
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
    optional: bool = False


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
