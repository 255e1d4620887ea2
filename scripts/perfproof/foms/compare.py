"""The comparison of two sides, each one or more runs: the only place that computes a delta.

`python -m perfproof.foms.compare A.json [A2.json …] --versus B.json [B2.json …] [--json]`
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfproof.core import step
from perfproof.core.errors import InputError, unknown
from perfproof.core.files import canonical_json, read_record
from perfproof.foms.agree import FIELDS, differences
from perfproof.foms.known import Known, record
from perfproof.foms.welch import interval_of, ratio_of
from perfproof.schema.base import Reason
from perfproof.schema.foms import Comparison, Foms

Direction = Literal["higher", "lower"]
Verdict = Literal["better", "worse", "~", "not_comparable", "unknown"]


@dataclass(frozen=True)
class Metric:
    """A figure that can be compared: its value in a run, which way is better, its unit."""

    value: Callable[[Foms], float | None]
    direction: Direction
    unit: str


METRICS: dict[str, Metric] = {
    "throughput_samples_per_s": Metric(lambda f: f.throughput_samples_per_s, "higher", "samples/s"),
    "step_time_s": Metric(lambda f: f.step_time_s.mean if f.step_time_s else None, "lower", "s"),
    "epoch_time_s": Metric(lambda f: f.epoch_time_s, "lower", "s"),
    "hbm_reserved_bytes": Metric(lambda f: f.hbm_reserved_bytes, "lower", "bytes"),
}


@dataclass(frozen=True)
class _Finding:
    ratio: Known[float]
    interval: Known[tuple[float, float]]
    verdict: Verdict


def compare(
    a: Sequence[Foms],
    b: Sequence[Foms],
    metric: str = "throughput_samples_per_s",
    confidence: float = 0.95,
    allow: frozenset[str] = frozenset(),
) -> Comparison:
    """Hold `b` against `a`. `allow` names integrity fields that are meant to differ.

    Without integrity there is no ratio; one run against one has a ratio but no interval, and so no
    verdict.
    """
    _check(a, b, metric, confidence, allow)
    differs = differences(a, b, metric, allow)
    if differs:
        found = _Finding(Reason.DISAGREES, Reason.DISAGREES, "not_comparable")
    else:
        found = _finding(a, b, metric, confidence)
    return record(
        Comparison,
        comparable=not differs,
        differs=differs,
        metric=metric,
        direction=METRICS[metric].direction,
        ratio=found.ratio,
        interval=found.interval,
        confidence=confidence,
        runs=(len(a), len(b)),
        verdict=found.verdict,
    )


def _check(
    a: Sequence[Foms], b: Sequence[Foms], metric: str, confidence: float, allow: frozenset[str]
) -> None:
    if metric not in METRICS:
        raise unknown("compare", "metric", metric, METRICS)
    for name in sorted(allow - set(FIELDS)):
        raise unknown("compare", "integrity field", name, FIELDS)
    if not 0 < confidence < 1:
        raise InputError("compare", str(confidence), "a number between 0 and 1", "confidence")
    if not a or not b:
        raise InputError("compare", "a side without runs", "at least one run on each side")


def _finding(a: Sequence[Foms], b: Sequence[Foms], metric: str, confidence: float) -> _Finding:
    for run in (*a, *b):
        if METRICS[metric].value(run) is None:
            reason = run.reasons[metric]
            return _Finding(reason, reason, "unknown")
    x, y = _values(a, metric), _values(b, metric)
    if len(x) < len(a) or len(y) < len(b):
        return _Finding(Reason.NOT_APPLICABLE, Reason.NOT_APPLICABLE, "unknown")
    ratio, interval = ratio_of(x, y), interval_of(x, y, confidence)
    if interval is None:
        return _Finding(ratio, Reason.TOO_FEW_VALUES, "unknown")
    return _Finding(ratio, interval, _verdict(interval, METRICS[metric].direction))


def _values(runs: Sequence[Foms], metric: str) -> list[float]:
    """The runs' values as far as they are positive, which a ratio needs."""
    values = [METRICS[metric].value(run) for run in runs]
    return [value for value in values if value is not None and value > 0]


def _verdict(interval: tuple[float, float], direction: Direction) -> Verdict:
    if interval[0] <= 1 <= interval[1]:
        return "~"
    return "better" if (interval[0] > 1) == (direction == "higher") else "worse"


def line(comparison: Comparison, a: Sequence[Foms], b: Sequence[Foms]) -> str:
    """One line for a terminal: both values, the ratio with its interval, the verdict."""
    means = [_values(side, comparison.metric) for side in (a, b)]
    shown = [f"{ratio_of([1.0], side):.6g}" if side else "null" for side in means]
    unit, (n, m) = METRICS[comparison.metric].unit, comparison.runs
    start = f"{comparison.metric}: {shown[0]} -> {shown[1]} {unit} ({n} vs {m} runs)"
    if comparison.differs:
        return f"{start} not comparable: {'; '.join(comparison.differs)}"
    if comparison.ratio is None:
        return f"{start} unknown: {comparison.reasons['ratio']}"
    spread = "no interval, nothing was repeated"
    if comparison.interval is not None:
        low, high = comparison.interval
        spread = f"[{low:.4f}, {high:.4f}] at {comparison.confidence:.0%}"
    return f"{start} ratio {comparison.ratio:.4f} {spread} {comparison.verdict}"


def _step(arguments: argparse.Namespace) -> step.Status:
    a = [read_record(path, Foms) for path in arguments.a]
    b = [read_record(path, Foms) for path in arguments.versus]
    allow = frozenset(arguments.allow)
    comparison = compare(a, b, arguments.metric, arguments.confidence, allow)
    if arguments.json:
        print(canonical_json(comparison.model_dump(mode="json")), end="")
    else:
        print(line(comparison, a, b))
    return step.Status("ok", f"verdict {comparison.verdict}")


def main() -> None:
    """Command line."""
    parser = step.parser("Compare two sides of one or more runs each")
    parser.add_argument("a", type=Path, nargs="+", help="foms.json of the runs of side a")
    parser.add_argument("--versus", type=Path, nargs="+", required=True, help="those of side b")
    parser.add_argument("--metric", default="throughput_samples_per_s", help="figure to compare")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the interval")
    parser.add_argument("--allow", nargs="*", default=[], help="integrity fields that may differ")
    parser.add_argument("--json", action="store_true", help="print the record instead of a line")
    step.run(_step, parser.parse_args())


if __name__ == "__main__":
    main()
