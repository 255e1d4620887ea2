"""Trace step: kineto traces of a run to tables and `tables/trace_summary.json`.

`python -m perfproof.traces.tables --inventory inventory.json --out-dir <analysis directory>`
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.core import step
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Artifact, Inventory, Role
from perfproof.schema.traces import Finding, RankTrace, Table, TraceSummary
from perfproof.traces.calls import launch_stats, runtime_calls
from perfproof.traces.collectives import coll_analysis
from perfproof.traces.columns import read_trace
from perfproof.traces.context import Context, make_context
from perfproof.traces.cpu_ops import cpu_ops
from perfproof.traces.crossrank import RankCollectives, rank_collectives, skew
from perfproof.traces.csvfile import Rows, write_table
from perfproof.traces.dataloader import dataloader
from perfproof.traces.identity import check_single, check_unchanged, is_named, rank_of
from perfproof.traces.idle import idle
from perfproof.traces.kernels import kernel_groups, kernel_summary, top_kernels
from perfproof.traces.memcpy import memcpy
from perfproof.traces.ops import ops_tables
from perfproof.traces.overlap import host_overlap
from perfproof.traces.quality import findings
from perfproof.traces.short import short_kernel_tables
from perfproof.traces.steps_table import steps
from perfproof.traces.timeline import gpu_timeline, window_timeline

SUMMARY = Path("tables") / "trace_summary.json"

# Tables about the device, and tables that a trace without a device has too.
_GPU_TABLES: dict[str, Callable[[Context], Rows]] = {
    "gpu_timeline": gpu_timeline,
    "window_timeline": window_timeline,
    "kernel_summary": kernel_summary,
    "coll_analysis": coll_analysis,
    "kernel_groups": kernel_groups,
    "top_kernels": top_kernels,
    "idle": idle,
    "launch_stats": launch_stats,
    "memcpy": memcpy,
    "runtime_calls": runtime_calls,
}
_CPU_TABLES: dict[str, Callable[[Context], Rows]] = {
    "steps": steps,
    "dataloader": dataloader,
    "cpu_ops": cpu_ops,
    "host_overlap": host_overlap,
}


@dataclass
class _Work:
    """What has been done so far, over the ranks of a run."""

    ranks: list[RankTrace] = field(default_factory=list)
    collectives: list[RankCollectives] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def make_tables(context: Context) -> dict[str, Rows]:
    """All tables of one rank, by name."""
    made = {name: table(context) for name, table in _CPU_TABLES.items()}
    if len(context.gpu):
        made |= {name: table(context) for name, table in _GPU_TABLES.items()}
        made |= ops_tables(context) | short_kernel_tables(context)
    return dict(sorted(made.items()))


def analyse(inventory: Inventory, root: Path, out: Path) -> TraceSummary:
    """Tables of all traces of a run, written under `out`/tables; a bad trace costs only itself."""
    work = _Work()
    artifacts = inventory.of(Role.TRACE)
    for artifact in artifacts:
        try:
            _one(artifact, root, out, len(artifacts) == 1, work)
        except InputError as fault:
            key = f"{fault.key}: " if fault.key else ""
            what = f"{key}{fault.found}; expected {fault.expected}"
            work.problems.append(Problem(where=artifact.path, what=what))
        except Exception as fault:
            traceback.print_exc(file=sys.stderr)
            what = f"not analysed: {type(fault).__name__}: {fault}"
            work.problems.append(Problem(where=artifact.path, what=" ".join(what.split())[:500]))
    compared = skew(work.collectives)
    _add_findings(work.ranks, compared.findings)
    return TraceSummary(
        run_id=inventory.run_id,
        ranks=sorted(work.ranks, key=lambda rank: rank.rank),
        cross_rank={
            name: write_table(out, f"tables/{name}.csv", table)
            for name, table in compared.tables.items()
        },
        problems=work.problems,
    )


def _one(artifact: Artifact, root: Path, out: Path, only: bool, work: _Work) -> None:
    check_unchanged(artifact, root)
    trace = read_trace(root / artifact.path, artifact.path)
    check_single(trace)
    rank = rank_of(trace, artifact, only)
    if taken := [other.file for other in work.ranks if other.rank == rank]:
        raise InputError(artifact.path, f"rank {rank}, as in {taken[0]}", "one trace for a rank")
    if trace.repairs.lost():
        work.problems.append(Problem(where=artifact.path, what=trace.repairs.describe()))
    context = make_context(trace, rank)
    tables = {
        name: write_table(out, f"tables/rank-{rank}/{name}.csv", table)
        for name, table in make_tables(context).items()
    }
    record = _record(context, tables)
    if not is_named(trace, artifact):
        text = "nothing names the rank; the only trace of the run is taken as rank 0"
        record.findings.append(
            Finding(code="rank_not_recorded", severity="info", value=0, message=text)
        )
    collectives = rank_collectives(context)
    work.ranks.append(record)
    work.collectives.append(collectives)


def _record(context: Context, tables: dict[str, Table]) -> RankTrace:
    trace, window = context.trace, context.window
    names = trace.meta.device_names
    empty = window.kind == "empty"
    fields = {
        "world_size": (trace.meta.world_size, Reason.NOT_RECORDED),
        "device_name": _device_name(context, names),
        "base_time_ns": (trace.meta.base_time_ns, Reason.NOT_RECORDED),
        "window_start_ns": (None if empty else window.start, Reason.NOT_RECORDED),
        "window_duration_ns": (None if empty else window.duration, Reason.NOT_RECORDED),
    }
    return RankTrace(
        rank=context.rank,
        file=trace.file,
        events=trace.events,
        gpu_events=trace.gpu_recorded,
        unlinked_gpu_events=int((~context.links.linked).sum()),
        steps=context.steps.number,
        visible_devices=trace.meta.visible_devices,
        window_kind=window.kind,
        tables=tables,
        findings=findings(context),
        reasons={name: reason for name, (value, reason) in fields.items() if value is None},
        **{name: value for name, (value, _) in fields.items()},
    )


def _device_name(context: Context, names: tuple[str, ...]) -> tuple[str | None, Reason]:
    """The name all visible devices share: their list cannot be indexed by a device number."""
    if not len(context.gpu):
        return None, Reason.NO_DEVICE
    return (names[0], Reason.NOT_RECORDED) if len(names) == 1 else (None, Reason.NOT_RECORDED)


def _add_findings(ranks: list[RankTrace], compared: dict[int, list[Finding]]) -> None:
    """Findings that only all ranks together show."""
    present = {rank.rank for rank in ranks}
    for rank in ranks:
        world = rank.world_size or 0
        absent = world - sum(0 <= other < world for other in present)
        if absent:
            text = f"{absent} of {rank.world_size} ranks have no readable trace"
            rank.findings.append(
                Finding(code="missing_ranks", severity="warn", value=absent, message=text)
            )
        rank.findings.extend(compared.get(rank.rank, []))


def run_step(arguments: argparse.Namespace) -> step.Status:
    """Read the inventory, write tables and summary."""
    inventory = read_record(arguments.inventory, Inventory)
    summary = analyse(inventory, Path(inventory.root), arguments.out_dir)
    write_record(arguments.out_dir / SUMMARY, summary)
    if not inventory.of(Role.TRACE):
        return step.Status("partial", "no trace")
    problems = [f"{problem.where}: {problem.what}" for problem in summary.problems]
    return step.ok_or_partial(problems, f"tables of {len(summary.ranks)} ranks")


def main() -> None:
    """Command line."""
    parser = step.parser("Kineto traces of a run to tables.")
    parser.add_argument("--inventory", type=Path, required=True, help="inventory.json of the run")
    parser.add_argument("--out-dir", type=Path, required=True, help="analysis directory")
    step.run(run_step, parser.parse_args())


if __name__ == "__main__":
    main()
