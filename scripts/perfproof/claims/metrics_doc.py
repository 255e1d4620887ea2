"""`docs/metrics.md`, generated from the vocabulary."""

from __future__ import annotations

from collections.abc import Iterable

from perfproof.claims.metrics import METRICS
from perfproof.claims.metrics_telemetry import TELEMETRY_METRICS
from perfproof.claims.metrics_trace import (
    COMM_NAME_REGEX,
    MEMCPY_KERNEL_REGEX,
    TRACE_METRICS,
)
from perfproof.claims.rules import TELEMETRY_RULES, TRACE_RULES
from perfproof.claims.vocabulary import SHARE_MEANING, ClassRule, Metric, Param, ShareRule
from perfproof.schema.claims import BottleneckClass

_INTRO = """# Metrics

Generated from `perfproof.claims.metrics` by `perfproof.schema.export`. Do not edit.

A claim names one of these metrics, its parameters, the rank (or GPU) and the value. Each metric is
computed twice: by the analyst from tables, and by the verifier from the raw trace or telemetry,
with code of its own. A claim is *verified* when

- `|value - verifier_value| <= absolute + relative * |verifier_value|`,
- its class is that of the table below,
- its `share_of_step` is no larger than the rule allows (plus the same tolerance),
- each claim named in `part_of` ranks above it, and that claim's time holds at least nine tenths of
  its time,
- the kernel group that it names is that of the kernels it selects, and it misses none of the group,
- if its statement names percentages, the first of them is the value as rounded there.

It is *refuted* when one of these fails, and *inconclusive* when the number cannot be recomputed: a
missing or changed file, an unknown metric, another unit, missing or wrong parameters. The note says
which.
"""

_DEFINITIONS = f"""## Terms

| term | meaning |
|---|---|
| GPU event | an event of category `kernel`, `gpu_memcpy` or `gpu_memset` (2021 files: `Kernel`, `Memcpy`, `Memset`); one without a positive duration is counted but covers no time |
| launch | the earliest `cuda_runtime` or `cuda_driver` event (2021: `Runtime`) with the same `args.correlation` above zero; an event without one is *unlinked* and still counts |
| step | a `ProfilerStep#N` annotation of the CPU |
| G | the GPU events launched between the start of the first step and the end of the last one (unlinked: started there). Without steps: all GPU events |
| W | the window: from the start of the first step to the end of the last step or of G, whichever is later. Without steps: the span of G. Without GPU events: the steps, else the span of the CPU operators |
| memcpy | an event of category `gpu_memcpy`, or a kernel whose name matches `{MEMCPY_KERNEL_REGEX.replace("|", chr(92) + "|")}` |
| comm | a kernel with `args["Collective name"]`, or whose name matches, ignoring case, `{COMM_NAME_REGEX.replace("|", chr(92) + "|")}` |
| compute | every other kernel, and memset |
| \\|union(X)\\| | length of time in which at least one event of X runs; overlaps count once. Sums of durations are never used: they exceed the wall |
| idle gap | a part of W in which no event of G runs |
| steady window | of telemetry: the time between step records of the log that carry a unix time, without the first three records, without pauses longer than three median steps, without the windows of the traces; without such records the run from start to end, as its manifest (or meta file) says. A sample counts when the second before it, over which the device averages, lies in the window |
"""  # noqa: E501

_PARTS = """The time of a claim is the part of W that bounds its share. It is what a fix gives back at most while
everything else runs when it did; of two kernels that overlap, neither is charged with the time they
share. Of a collective in which a rank waits, the wait is the first part: it ends together on all ranks.

`part_of` lists the claims ranked above whose time holds this one's, both taken on this claim's rank: a
kernel in its group, a synchronisation in a copy, a wait in exposed communication. Shares of claims
that are part of another do not add to its share.
"""  # noqa: E501


def metrics_markdown() -> str:
    """The whole page."""
    parts = [_INTRO, _DEFINITIONS, "## Upper bounds on the share of step time\n", _shares(), _PARTS]
    parts += ["## Metrics of a trace (one rank each)\n", *map(_section, TRACE_METRICS)]
    parts += [
        "## Metrics of telemetry (one GPU, interface or node each)\n",
        *map(_section, TELEMETRY_METRICS),
    ]
    parts += ["## Classes\n", _classes()]
    return "\n".join(parts)


def _shares() -> str:
    rows = ((rule.value, SHARE_MEANING[rule]) for rule in ShareRule)
    return _table(("`share_of_step`", "because"), rows)


def _section(metric: Metric) -> str:
    rows = [
        ("definition", metric.definition),
        ("formula", f"`{metric.formula.replace('|', chr(92) + '|')}`"),
        ("unit", metric.unit),
        ("class", _class_text(metric.class_rule)),
        ("share of step", metric.share.value),
        ("tolerance", f"{metric.absolute:g} + {metric.relative:g} × value"),
        ("analyst reads", f"`{metric.table}`"),
        ("analyst claims it", _rule_text(metric)),
        *((f"parameter `{param.name}`", _param_text(param)) for param in metric.params),
    ]
    return f"### {metric.name}\n\n" + _table(("", ""), rows)


def _rule_text(metric: Metric) -> str:
    rule = {**TRACE_RULES, **TELEMETRY_RULES}[metric.name]
    of = "value" if metric.share is ShareRule.NONE else "share of step"
    most = f", value at most {rule.at_most:g}" if rule.at_most < float("inf") else ""
    beside = f", beside a claim of `{rule.needs}`" if rule.needs else ""
    return f"from {of} {rule.least:g}{most}{beside}: {rule.why}"


def _param_text(param: Param) -> str:
    choices = f" ({', '.join(param.choices)})" if param.choices else ""
    kind = f"{param.kind}, may be absent" if param.optional else param.kind
    return f"{kind}: {param.meaning}{choices}"


def _class_text(rule: ClassRule) -> str:
    if rule.by is None:
        return ", ".join(rule.classes.values())
    named = [
        f"{bottleneck} where {rule.by} is {value}" for value, bottleneck in rule.classes.items()
    ]
    return "; ".join(named + ([f"else {rule.default}"] if rule.default else []))


def _classes() -> str:
    def named(bottleneck: BottleneckClass) -> str:
        users = [m.name for m in METRICS.values() if bottleneck in _all_classes(m.class_rule)]
        return ", ".join(f"`{name}`" for name in users)

    return _table(("class", "metrics"), ((str(b), named(b)) for b in BottleneckClass))


def _all_classes(rule: ClassRule) -> set[BottleneckClass]:
    return set(rule.classes.values()) | ({rule.default} if rule.default else set())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
