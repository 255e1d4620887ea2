"""Compare two traces, or two sets of traces: what takes more or less GPU time, and where.

`python -m perfproof.traces.compare A... --versus B... --out-dir DIR`
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.core import step
from perfproof.core.errors import InputError
from perfproof.core.files import write_record, write_text
from perfproof.schema.base import Problem
from perfproof.schema.traces import ComparedRow, ComparedSide, ComparedTotal, TraceComparison
from perfproof.traces.columns import read_trace
from perfproof.traces.compare_page import page
from perfproof.traces.context import Context, make_context
from perfproof.traces.csvfile import Rows, write_table
from perfproof.traces.identity import check_single
from perfproof.traces.inputs import all_traces
from perfproof.traces.quality import findings
from perfproof.traces.sides import LEVELS, Basis, Measured, Work, has_steps, mean, measure

RECORD, PAGE = "trace_comparison.json", "trace_comparison.md"
LARGEST = 20
_NUMBERS = ("where", "a_count", "b_count", "a_us", "b_us", "difference_us", "share_of_a")


@dataclass(frozen=True)
class Counted:
    """One trace of a side; `per_step` is None where no step launched GPU work."""

    file: str
    devices: tuple[str, ...]
    per_trace: Measured
    per_step: Measured | None

    def on(self, basis: Basis) -> Measured:
        """Its work on a basis that it has."""
        return self.per_step if basis == "per step" and self.per_step else self.per_trace


@dataclass
class Side:
    """The traces of one side. Only their sums are kept, so a set may be of any size."""

    traces: list[Counted] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_side(paths: Sequence[Path], name: str) -> Side:
    """Read the traces of one side; a bad one costs only itself. Raises when none is left."""
    side, faults = Side(), list[InputError]()
    for file, label in all_traces(paths):
        try:
            context = _read(file, label)
        except InputError as fault:
            faults.append(fault)
            side.problems.append(Problem(where=label, what=f"side {name}: {_what(fault)}"))
            continue
        side.traces.append(
            Counted(
                file=label,
                devices=context.trace.meta.device_names,
                per_trace=measure(context, "per trace"),
                per_step=measure(context, "per step") if has_steps(context) else None,
            )
        )
        side.problems += _doubts(context, name)
    if not side.traces:
        raise faults[0]
    return side


def _read(file: Path, label: str) -> Context:
    trace = read_trace(file, label)
    check_single(trace)
    if not len(trace.gpu):
        raise InputError(label, "no GPU event", "a trace with GPU events")
    return make_context(trace, trace.meta.rank or 0)


def _what(fault: InputError) -> str:
    key = f"{fault.key}: " if fault.key else ""
    return f"{key}{fault.found}; expected {fault.expected}"


def _doubts(context: Context, name: str) -> list[Problem]:
    """What makes the times of a trace doubtful."""
    return [
        Problem(where=context.trace.file, what=f"side {name}: {found.code}: {found.message}")
        for found in findings(context)
        if found.severity == "bad"
    ]


def choose_basis(a: Side, b: Side) -> tuple[Basis, str]:
    """`per step` only where every trace of both sides has steps with GPU work."""
    without = [
        f"{trace.file} (side {name})"
        for name, side in (("a", a), ("b", b))
        for trace in side.traces
        if trace.per_step is None
    ]
    if without:
        return "per trace", f"no profiled step launched GPU work in {', '.join(without)}"
    return "per step", "every trace has profiled steps that launched GPU work"


def compare(a: Side, b: Side, out: Path) -> TraceComparison:
    """Compare side `b` with side `a`; tables are written under `out`."""
    basis, reason = choose_basis(a, b)
    ours, theirs = (mean([trace.on(basis) for trace in side.traces]) for side in (a, b))
    rows = {level: compared_rows(ours, theirs, level) for level in LEVELS}
    return TraceComparison(
        basis=basis,
        basis_reason=reason,
        a=_side(a, basis, ours),
        b=_side(b, basis, theirs),
        totals=_totals(ours, theirs),
        largest={level: found[:LARGEST] for level, found in rows.items()},
        tables={
            level: write_table(out, f"{level}.csv", _table(found, LEVELS[level]))
            for level, found in rows.items()
        },
        problems=[*a.problems, *b.problems],
    )


def compared_rows(a: Measured, b: Measured, level: str) -> list[ComparedRow]:
    """All keys of both sides, largest |difference| first."""
    ours, theirs = a.levels[level], b.levels[level]
    rows = [
        _row(dict(zip(LEVELS[level], key, strict=True)), ours.get(key), theirs.get(key), a.time_ns)
        for key in ours.keys() | theirs.keys()
    ]
    return sorted(rows, key=lambda row: (-abs(row.difference_us), tuple(row.key.values())))


def _row(key: dict[str, str], a: Work | None, b: Work | None, time_ns: float) -> ComparedRow:
    mine, other = a or Work(0, 0), b or Work(0, 0)
    difference = other.covered_ns - mine.covered_ns
    return ComparedRow(
        key=key,
        where="both" if a and b else "only_a" if a else "only_b",
        a_count=mine.events,
        b_count=other.events,
        a_us=mine.covered_ns / 1e3,
        b_us=other.covered_ns / 1e3,
        difference_us=difference / 1e3,
        share_of_a=difference / time_ns if time_ns else 0.0,
    )


def _totals(a: Measured, b: Measured) -> list[ComparedTotal]:
    return [_total(name, a.totals[name], b.totals[name], a.time_ns) for name in a.totals]


def _total(name: str, a: float, b: float, time_ns: float) -> ComparedTotal:
    is_time = name != "GPU events"
    unit = 1e3 if is_time else 1.0
    return ComparedTotal(
        name=f"{name}_us".replace(" ", "_") if is_time else "gpu_events",
        a=a / unit,
        b=b / unit,
        difference=(b - a) / unit,
        share_of_a=(b - a) / time_ns if is_time and time_ns else None,
    )


def _side(side: Side, basis: Basis, whole: Measured) -> ComparedSide:
    return ComparedSide(
        files=[trace.file for trace in side.traces],
        devices=sorted({name for trace in side.traces for name in trace.devices}),
        steps=[trace.on(basis).steps for trace in side.traces],
        time_us=whole.time_ns / 1e3,
    )


def _table(rows: list[ComparedRow], keys: tuple[str, ...]) -> Rows:
    return Rows(
        (*keys, *_NUMBERS),
        [(*row.key.values(), *(getattr(row, name) for name in _NUMBERS)) for row in rows],
    )


def run_step(arguments: argparse.Namespace) -> step.Status:
    """Read both sides, write record, tables and page."""
    a, b = read_side(arguments.a, "a"), read_side(arguments.versus, "b")
    found = compare(a, b, arguments.out_dir)
    write_record(arguments.out_dir / RECORD, found)
    write_text(arguments.out_dir / PAGE, page(found))
    difference = found.totals[0]
    change = f"{difference.a:.6g} to {difference.b:.6g} us {found.basis}"
    problems = [f"{problem.where}: {problem.what}" for problem in found.problems]
    return step.ok_or_partial(problems, change)


def main() -> None:
    """Command line."""
    parser = step.parser("Compare GPU time of two traces, or of two sets of traces.")
    parser.add_argument("a", type=Path, nargs="+", help="trace files or directories: the reference")
    parser.add_argument("--versus", type=Path, nargs="+", required=True, help="the other side")
    parser.add_argument("--out-dir", type=Path, required=True, help="directory for the results")
    step.run(run_step, parser.parse_args())


if __name__ == "__main__":
    main()
