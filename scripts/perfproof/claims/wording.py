"""Choices in words: statements, remedies, levers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfproof.claims.candidates import Candidate
from perfproof.claims.metrics import METRICS
from perfproof.claims.rules import Rule
from perfproof.claims.selection import Choice
from perfproof.claims.vocabulary import ShareRule
from perfproof.schema.base import Reason
from perfproof.schema.claims import BottleneckClass, Claim, Source
from perfproof.schema.levers import LeverCatalog

_HOST_BOUND = frozenset(
    {BottleneckClass.CPU_DISPATCH, BottleneckClass.HOST_CPU, BottleneckClass.DATALOADER}
)
_DISPATCH = frozenset({"gpu_idle_fraction", "host_late_idle_fraction"})
STRETCHED = 1.1


@dataclass(frozen=True)
class Slowdown:
    """How much profiling stretched the step of one rank."""

    traced_s: float
    unprofiled_s: float
    busy_s: float
    """GPU work of a step; 0 without a GPU."""

    @property
    def ratio(self) -> float:
        """Traced step over unprofiled step."""
        return self.traced_s / self.unprofiled_s

    def brief(self) -> str:
        """What a reader of any host-bound claim must know."""
        return (
            f" Profiling stretched the step {self.ratio:.2f} times ({1000 * self.traced_s:.1f} ms "
            f"traced, {1000 * self.unprofiled_s:.1f} ms without)"
        )

    def full(self) -> str:
        """The same with what it means for the GPU's idle time."""
        said = self.brief()
        if not self.busy_s:
            return f"{said}: shares of host time are overstated."
        idle = max(0.0, 1 - self.busy_s / self.unprofiled_s)
        return (
            f"{said}: busy shares are understated here. With the same GPU work a step, the GPU "
            f"would idle {100 * idle:.1f} % without the profiler."
        )


def write_claims(
    choices: Sequence[Choice],
    source: Source,
    rules: dict[str, Rule],
    slowdowns: dict[int, Slowdown],
    catalog: LeverCatalog | None,
    containers: Sequence[Sequence[int]] = (),
) -> list[Claim]:
    """Claims in the order of `choices`, numbered; `containers`: for each the places it is in."""
    prefix = {Source.TRACE: "TR", Source.TELEMETRY: "TE"}[source]
    names = [f"{prefix}-{number:03d}" for number in range(1, len(choices) + 1)]
    parts = [[names[place] for place in places] for places in containers] or [[] for _ in names]
    return [
        _claim(name, part_of, source, choice, rules, slowdowns, catalog)
        for name, part_of, choice in zip(names, parts, choices, strict=True)
    ]


def _claim(
    name: str,
    part_of: list[str],
    source: Source,
    choice: Choice,
    rules: dict[str, Rule],
    slowdowns: dict[int, Slowdown],
    catalog: LeverCatalog | None,
) -> Claim:
    found, remedy = choice.candidate, rules[choice.candidate.metric].remedy
    why = {"share_of_step": Reason.NO_SHARE, "remedy": Reason.NO_REMEDY}
    nulls = {"share_of_step": choice.share, "remedy": remedy}
    return Claim.model_validate(
        {
            "id": name,
            "class": choice.bottleneck,
            "source": source,
            "statement": _statement(choice, source, slowdowns),
            "metric": found.metric,
            "params": found.params,
            "value": found.value,
            "unit": METRICS[found.metric].unit,
            "share_of_step": choice.share,
            "ranks": [found.rank] if source is Source.TRACE else [],
            "evidence": found.evidence,
            "part_of": part_of,
            "remedy": remedy,
            "levers": levers_for(choice.bottleneck, catalog),
            "reasons": {k: why[k] for k, value in nulls.items() if value is None},
        }
    )


def levers_for(bottleneck: BottleneckClass, catalog: LeverCatalog | None) -> list[str]:
    """Ids of the catalog's levers that address the class, sorted; diagnostics are none."""
    levers = catalog.levers if catalog else []
    return sorted(
        lever.id for lever in levers if lever.kind == "lever" and bottleneck in lever.classes
    )


def _statement(choice: Choice, source: Source, slowdowns: dict[int, Slowdown]) -> str:
    found, unit = choice.candidate, METRICS[choice.candidate.metric].unit
    amount = f"{100 * found.value:.1f} %" if unit == "fraction" else f"{found.value:.1f} {unit}"
    where, one = (
        (f"on rank {found.rank}", "ranks")
        if source is Source.TRACE
        else (f"on GPU {found.rank}", "GPUs")
    )
    if found.place is not None:
        where, one = f"on {' '.join(found.place)}", f"{found.place[0]}s"
    many = f", the {choice.extreme} of {choice.compared} {one}," if choice.compared > 1 else ""
    text = f"{amount} {found.of}{where}{many} {found.what}."
    text += _bound(found)
    slow = slowdowns.get(found.rank)
    if choice.bottleneck in _HOST_BOUND and slow and slow.ratio >= STRETCHED:
        idle = found.metric == "gpu_idle_fraction" or not slow.busy_s
        text += slow.full() if idle else f"{slow.brief()}."
    return text


def _bound(found: Candidate) -> str:
    """A sentence on the share, where it is visibly less than the value."""
    if found.share is None or METRICS[found.metric].share is ShareRule.COMPLEMENT:
        return ""
    share, hidden = f"{100 * found.share:.1f} %", f"{100 * (found.value - found.share):.1f} %"
    if hidden == "0.0 %":
        return ""
    if found.metric in _DISPATCH:
        return f" {hidden} of the window is waiting for the data loader, not dispatch."
    if METRICS[found.metric].share is ShareRule.ALONE:
        return f" No other GPU work runs beside it in {share} of the window: no more can be gained."
    return (
        f" Meanwhile the GPU idles in {share} of the window, the data loader's idle time apart: no "
        "more can be gained."
    )
