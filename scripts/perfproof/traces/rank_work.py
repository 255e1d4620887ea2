"""One rank's trace to its tables as text, in whatever process; a bad trace is a problem."""

from __future__ import annotations

import multiprocessing
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfproof.core.errors import InputError
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Artifact
from perfproof.schema.traces import Finding, RankTrace
from perfproof.traces.calls import launch_stats, runtime_calls
from perfproof.traces.collectives import coll_analysis
from perfproof.traces.columns import read_trace
from perfproof.traces.context import Context, make_context
from perfproof.traces.cpu_ops import cpu_ops
from perfproof.traces.crossrank import RankCollectives, rank_collectives
from perfproof.traces.csvfile import Rows
from perfproof.traces.dataloader import dataloader
from perfproof.traces.identity import check_single, check_unchanged, is_named, rank_of
from perfproof.traces.idle import idle
from perfproof.traces.kernels import kernel_groups, kernel_summary, top_kernels
from perfproof.traces.linked import linked_timeline
from perfproof.traces.memcpy import memcpy
from perfproof.traces.ops import ops_tables
from perfproof.traces.overlap import host_overlap
from perfproof.traces.quality import findings
from perfproof.traces.quality_record import measured
from perfproof.traces.roofline import roofline
from perfproof.traces.short import short_kernel_tables
from perfproof.traces.steps_table import steps
from perfproof.traces.timeline import gpu_timeline, window_timeline

# A process takes as long to start (0.6 s) as to analyse so much of gzipped traces.
BYTES_A_PROCESS = 2_500_000

# Tables about the device, and tables that a trace without a device has too.
_GPU_TABLES: dict[str, Callable[[Context], Rows]] = {
    "gpu_timeline": gpu_timeline,
    "linked_timeline": linked_timeline,
    "window_timeline": window_timeline,
    "kernel_summary": kernel_summary,
    "coll_analysis": coll_analysis,
    "kernel_groups": kernel_groups,
    "top_kernels": top_kernels,
    "idle": idle,
    "launch_stats": launch_stats,
    "memcpy": memcpy,
    "runtime_calls": runtime_calls,
    "roofline": roofline,
}
_CPU_TABLES: dict[str, Callable[[Context], Rows]] = {
    "steps": steps,
    "dataloader": dataloader,
    "cpu_ops": cpu_ops,
    "host_overlap": host_overlap,
}


@dataclass(frozen=True)
class RankWork:
    """What one trace gives by itself; small against the trace, so it may cross processes."""

    record: RankTrace  # without tables
    texts: dict[str, tuple[str, int]]  # by table: CSV text, number of rows
    collectives: RankCollectives
    numbers: dict[str, Any]  # of the quality record
    lost: str  # what of the file is missing, empty where nothing is


def make_tables(context: Context) -> dict[str, Rows]:
    """All tables of one rank, by name."""
    made = {name: table(context) for name, table in _CPU_TABLES.items()}
    if len(context.gpu):
        made |= {name: table(context) for name, table in _GPU_TABLES.items()}
        made |= ops_tables(context) | short_kernel_tables(context)
    return dict(sorted(made.items()))


def all_ranks(artifacts: Sequence[Artifact], root: Path, jobs: int) -> Iterator[RankWork | Problem]:
    """The work of each trace, in order; at most `jobs` traces are in memory at a time."""
    only = len(artifacts) == 1
    worth = sum(artifact.size_bytes for artifact in artifacts) // BYTES_A_PROCESS
    processes = min(jobs, len(artifacts), worth)
    if processes < 2:
        for artifact in artifacts:
            yield rank_work(artifact, root, only)
        return
    # Not forked: numpy has threads.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn) as pool:
        started = [(a, pool.submit(rank_work, a, root, only)) for a in artifacts]
        for artifact, future in started:
            yield _result(future, artifact, root, only)


def _result(
    future: Future[RankWork | Problem], artifact: Artifact, root: Path, only: bool
) -> RankWork | Problem:
    """What a worker found; a process that died takes its pool along, so this one is tried alone."""
    try:
        return future.result()
    except BrokenProcessPool:
        pass
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            return alone.submit(rank_work, artifact, root, only).result()
    except BrokenProcessPool:
        what = "not analysed: the process was killed (out of memory?)"
        return Problem(where=artifact.path, what=what)


def rank_work(artifact: Artifact, root: Path, only: bool) -> RankWork | Problem:
    """Read and analyse one trace. `only`: it is the single trace of the run."""
    try:
        return _rank_work(artifact, root, only)
    except InputError as fault:
        key = f"{fault.key}: " if fault.key else ""
        what = f"{key}{fault.found}; expected {fault.expected}"
        return Problem(where=artifact.path, what=what)
    except Exception as fault:
        return unexpected(artifact.path, fault)


def unexpected(where: str, fault: Exception) -> Problem:
    """An error that no input should cause: shown in full, and a problem of its trace only."""
    traceback.print_exception(fault, file=sys.stderr)
    what = f"not analysed: {type(fault).__name__}: {fault}"
    return Problem(where=where, what=" ".join(what.split())[:500])


def _rank_work(artifact: Artifact, root: Path, only: bool) -> RankWork:
    check_unchanged(artifact, root)
    trace = read_trace(root / artifact.path, artifact.path)
    check_single(trace)
    context = make_context(trace, rank_of(trace, artifact, only))
    record = _record(context)
    if not is_named(trace, artifact):
        text = "nothing names the rank; the only trace of the run is taken as rank 0"
        record.findings.append(
            Finding(code="rank_not_recorded", severity="info", value=0, message=text)
        )
    made = make_tables(context)
    return RankWork(
        record=record,
        texts={name: (table.text(), len(table.rows)) for name, table in made.items()},
        collectives=rank_collectives(context),
        numbers=measured(context),
        lost=trace.repairs.describe() if trace.repairs.lost() else "",
    )


def _record(context: Context) -> RankTrace:
    trace, window = context.trace, context.window
    empty = window.kind == "empty"
    fields = {
        "world_size": (trace.meta.world_size, Reason.NOT_RECORDED),
        "device_name": _device_name(context, trace.meta.device_names),
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
        tables={},
        findings=findings(context),
        reasons={name: reason for name, (value, reason) in fields.items() if value is None},
        **{name: value for name, (value, _) in fields.items()},
    )


def _device_name(context: Context, names: tuple[str, ...]) -> tuple[str | None, Reason]:
    """The name all visible devices share: their list cannot be indexed by a device number."""
    if not len(context.gpu):
        return None, Reason.NO_DEVICE
    return (names[0], Reason.NOT_RECORDED) if len(names) == 1 else (None, Reason.NOT_RECORDED)
