"""The comparison of two sides, each one or more runs: the only place that computes a delta.

`python -m perfproof.foms.compare RUN [RUN …] --versus REFERENCE [REFERENCE …]`, where a run is its
directory or its `foms.json`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfproof.core import step
from perfproof.core.errors import InputError, unknown
from perfproof.core.files import digest_record, read_record, write_record
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
    _check_distinct([*a, *b])


def _check_distinct(runs: Sequence[Foms]) -> None:
    """One run given twice would pass for a repetition and make an interval out of nothing."""
    seen: dict[str, str] = {}
    for run in runs:
        key = digest_record(run.model_copy(update={"run_id": ""}))
        if key in seen:
            expected = "each run once; a repetition is a run of its own"
            raise InputError("compare", f"'{seen[key]}' and '{run.run_id}' are one run", expected)
        seen[key] = run.run_id


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
    """One line for a terminal: `b` against the reference `a`, ratio, interval, verdict."""
    means = [_values(side, comparison.metric) for side in (a, b)]
    reference, value = [f"{ratio_of([1.0], side):.6g}" if side else "null" for side in means]
    unit, (n, m) = METRICS[comparison.metric].unit, comparison.runs
    runs = f"geometric means of {m} and {n} runs"
    start = f"{comparison.metric}: {value} against {reference} {unit} ({runs})"
    if comparison.differs:
        fields = sorted({text.partition(":")[0] for text in comparison.differs})
        allow = " ".join(f"--allow {name}" for name in fields)
        return f"{start}: not comparable: {'; '.join(comparison.differs)} (if meant: {allow})"
    if comparison.ratio is None:
        return f"{start}: unknown: {comparison.reasons['ratio']}"
    ratio = f"{start}: ratio {comparison.ratio:.4f}"
    if comparison.interval is None:
        return f"{ratio}: unknown: one run on each side has no interval; repeat at least one"
    low, high = comparison.interval
    sure = f"[{low:.4f}, {high:.4f}] at {comparison.confidence:.0%}"
    return f"{ratio} {sure}: {_WORDS[comparison.verdict]}"


_WORDS = {"better": "better", "worse": "worse", "~": "~ (the interval holds 1)"}


def _step(arguments: argparse.Namespace) -> step.Status:
    reference, runs = [_read(side) for side in (arguments.versus, arguments.runs)]
    allow = frozenset(arguments.allow)
    comparison = compare(reference, runs, arguments.metric, arguments.confidence, allow)
    if arguments.out:
        write_record(arguments.out, comparison)
    print(line(comparison, reference, runs))
    return step.Status("ok", f"verdict {comparison.verdict}")


def _read(paths: Sequence[Path]) -> list[Foms]:
    return [read_record(path / "foms.json" if path.is_dir() else path, Foms) for path in paths]


def main() -> None:
    """Command line."""
    parser = step.parser("Hold one or more runs against one or more reference runs.")
    either = "run directory, or its foms.json"
    parser.add_argument("runs", type=Path, nargs="+", help=f"runs to judge: {either}")
    parser.add_argument(
        "--versus", type=Path, nargs="+", required=True, help=f"runs to hold them against: {either}"
    )
    parser.add_argument("--metric", default="throughput_samples_per_s", help="figure to compare")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the interval")
    fields = ", ".join(FIELDS)
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="FIELD",
        help=f"integrity field that is meant to differ, can be repeated: {fields}",
    )
    parser.add_argument("--out", type=Path, help="comparison.json to write")
    step.run(_step, parser.parse_args())


if __name__ == "__main__":
    main()
