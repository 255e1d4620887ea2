"""The lever catalog: what may be changed, how to see that it changed, what is known about it."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from perfproof.schema.base import Strict
from perfproof.schema.claims import BottleneckClass
from perfproof.schema.config import Dtype, Id, Workload

Version = Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.+_-]*$")]
Hook = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+\.py$")]
VerdictWord = Literal[
    "accepted", "neutral", "rejected", "blocked", "tabled", "artifact", "diagnostic", "experimental"
]
# Verdicts that take a lever out of the loop where their fingerprint matches.
CLOSING = frozenset({"rejected", "blocked", "tabled", "artifact"})


class Fingerprint(Strict):
    """The conditions a verdict was seen under, or those of a run.

    In a verdict, a null field was not recorded and matches anything; versions match by their
    leading components (`2.10` matches `2.10.0+rocm7.2`).
    """

    model: Id | None = Field(None, description="name of the model")
    workload: Workload | None = Field(None, description="which trainer ran")
    arch: str | None = Field(None, description="device architecture: `gfx950`, `sm_90`, `cpu`")
    dtype: Dtype | None = Field(None, description="type of the parameters")
    torch: Version | None = Field(None, description="PyTorch")
    rocm: Version | None = Field(None, description="ROCm")
    cuda: Version | None = Field(None, description="CUDA")
    driver: Version | None = Field(None, description="device driver")
    nodes: int | None = Field(None, ge=1, description="number of nodes")
    ranks: int | None = Field(None, ge=1, description="number of ranks")
    fsdp: int | None = Field(None, ge=1, description="sharded data-parallel size")
    tensor_par: int | None = Field(None, ge=1, description="tensor-parallel size")
    batch_size: int | None = Field(None, ge=1, description="samples a rank a step")


class Verdict(Strict):
    """What was found out about a lever once, and where that holds."""

    verdict: VerdictWord = Field(
        description="`rejected`, `blocked`, `tabled` and `artifact` keep the lever out of loops "
        "whose fingerprint matches"
    )
    fingerprint: Fingerprint
    evidence: str = Field(min_length=1, description="what was seen: runs, numbers, the error")
    date: datetime.date
    expires: datetime.date | None = Field(
        None, description="from then on it no longer counts; null: never"
    )

    @model_validator(mode="after")
    def _closing_ones_say_where(self) -> Self:
        where = self.fingerprint
        if self.verdict in CLOSING and None in (where.model, where.arch, where.dtype):
            raise ValueError(f"a verdict '{self.verdict}' must name model, arch and dtype")
        return self


class Requires(Strict):
    """What a run must have for a lever to make sense. Empty lists and nulls ask for nothing."""

    nodes_min: int = Field(1, ge=1, description="smallest number of nodes")
    ranks_min: int = Field(1, ge=1, description="smallest number of ranks")
    gpu: bool = Field(False, description="needs a GPU")
    vendor: list[Literal["amd", "nvidia"]] = Field(default_factory=list, description="any of these")
    arch: list[str] = Field(default_factory=list, description="any of these")
    dtype: list[Dtype] = Field(default_factory=list, description="any of these, in the baseline")
    workload: list[Workload] = Field(default_factory=list, description="any of these")
    features: list[str] = Field(
        default_factory=list, description="switches that the trainer must offer, all of them"
    )


class Expected(Strict):
    """Size of the effect on the primary figure that others saw: 0.03 is 3 % better."""

    low: float | None = Field(None, description="relative gain, lower end; null: unknown")
    high: float | None = Field(None, description="relative gain, upper end; null: unknown")
    source: str = Field(min_length=1, description="where the size is from")


class EffectProof(Strict):
    """What must be seen of a run to believe that the lever took effect. All that is given must."""

    dtype: Dtype | None = Field(None, description="type of the parameters inside rank 0")
    num_workers: int | None = Field(None, ge=0, description="loader processes inside rank 0")
    batch_size: int | None = Field(None, ge=1, description="batch size of the live loader")
    env: dict[str, str] = Field(
        default_factory=dict, description="variables as rank 0 saw them: an echo, no effect yet"
    )
    effects: dict[str, str] = Field(
        default_factory=dict, description="settings as the live objects of rank 0 hold them"
    )
    changes: list[str] = Field(
        default_factory=list,
        description="settings of rank 0 of which at least one must differ from the run held "
        "against, where that run lacks the lever",
    )
    kernel: str | None = Field(
        None, description="regular expression; a kernel in the trace must match"
    )
    no_kernel: str | None = Field(
        None, description="regular expression; no kernel in the trace may match"
    )

    @model_validator(mode="after")
    def _something_and_valid(self) -> Self:
        if not any(self.model_dump().values()) and self.num_workers is None:
            raise ValueError("an effect proof needs at least one thing to see")
        for pattern in (self.kernel, self.no_kernel):
            try:
                re.compile(pattern or "")
            except re.error as fault:
                raise ValueError(f"'{pattern}' is not a regular expression: {fault}") from None
        return self


class Lever(Strict):
    """One change to a recipe, what it needs, and how to see that it took effect."""

    id: Id
    description: str = Field(min_length=1)
    kind: Literal["lever", "diagnostic"] = Field(
        "lever", description="a diagnostic is measured but never accepted"
    )
    set: dict[str, Any] = Field(
        default_factory=dict, description="dotted recipe keys and their new values"
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment variables to set")
    hook: Hook | None = Field(
        None,
        description="file in `config/hooks/` that each rank runs before its model is built; it "
        "defines `apply()`, which returns what holds then, for `effect_proof: {effects: …}`",
    )
    conflicts: list[Id] = Field(default_factory=list, description="levers it cannot be with")
    classes: list[BottleneckClass] = Field(
        default_factory=list, description="bottleneck classes it addresses"
    )
    requires: Requires = Field(default_factory=lambda: Requires())
    expected: Expected | None = Field(None, description="size of its effect; null: nobody knows")
    risk: Literal["low", "medium", "high"] = Field(
        "low", description="of failing or of wrong results"
    )
    changes_numerics: bool = Field(False, description="results may differ in rounding")
    changes_model: bool = Field(
        False, description="the trained function differs: never accepted on throughput alone"
    )
    may_change: list[str] = Field(
        default_factory=list,
        description="integrity fields that it means to change; others must stay equal",
    )
    effect_proof: EffectProof | None = Field(
        None, description="null: a loop cannot accept it, only `explain` why"
    )
    verdicts: list[Verdict] = Field(default_factory=list, description="what is known, by where")
    source: str = Field("", description="where the lever comes from")


class KnownNoise(Strict):
    """How much equal runs varied once, and where that was."""

    fingerprint: Fingerprint
    sd: float = Field(gt=0, description="standard deviation of ln(primary figure) over runs")
    df: float = Field(gt=0, description="degrees of freedom: runs less one")
    source: str = Field(min_length=1, description="which runs")


class LeverCatalog(Strict):
    """`config/levers/<model>.yaml`."""

    model: Id
    levers: list[Lever]
    noise: list[KnownNoise] = Field(
        default_factory=list,
        description="pooled with a loop's own baseline where the fingerprint matches, as far as "
        "the two agree",
    )

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        ids = [lever.id for lever in self.levers]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"lever ids listed twice: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _conflicts_are_levers(self) -> Self:
        ids = {lever.id for lever in self.levers}
        strange = sorted({name for lever in self.levers for name in lever.conflicts} - ids)
        if strange:
            raise ValueError(f"conflicts name no lever of this catalog: {', '.join(strange)}")
        return self
