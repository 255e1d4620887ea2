"""Sum up a run's telemetry over its steady window."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.core.victoria import StoreError, binary
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Inventory, Manifest, Role
from perfproof.schema.telemetry import TelemetrySummary
from perfproof.schema.traces import TraceSummary
from perfproof.telemetry.figures import Scene, figures
from perfproof.telemetry.gpus import gpu_records, vanished
from perfproof.telemetry.load import cards, choose, jobs, load, sample_times
from perfproof.telemetry.store import Store
from perfproof.telemetry.victoria import by_promql
from perfproof.telemetry.window import Window, profiled_spans, steady_window

BUILT_IN, PROMQL = "built-in", "promql"


def summarize(
    inventory: Inventory, traces: TraceSummary | None = None, program: str | None = None
) -> TelemetrySummary:
    """Telemetry of one run; without telemetry all values are null with that reason.

    `traces` says when the profiler recorded: samples of that time do not count. With `program`, a
    VictoriaMetrics server, its queries are asked there; the numbers are the same.
    """
    chosen = choose(inventory)
    if chosen.artifact is None:
        return _empty(inventory.run_id, None, Reason.NO_TELEMETRY, [])
    where, problems = chosen.artifact.path, chosen.problems
    window = steady_window(inventory, profiled_spans(traces) if traces else ())
    try:
        store = load(inventory, chosen.artifact, window.job_ms())
    except InputError as fault:
        problems.append(Problem(where=where, what=f"{fault.found}; expected {fault.expected}"))
        return _empty(inventory.run_id, where, Reason.UNREADABLE, problems)
    jobid, remarks = _jobid(inventory, store)
    problems += [Problem(where=where, what=what) for what in [*store.problems, *remarks]]
    opened = by_promql(program, store) if program else nullcontext(None)
    with opened as server:
        evaluator = server.readings if server else None
        scene = Scene(store, window.spans_ms(), jobid, evaluator)
        return _summary(inventory.run_id, where, scene, window, problems)


def _jobid(inventory: Inventory, store: Store) -> tuple[str | None, list[str]]:
    """The job to join with where the file holds several; a file of one job needs no join."""
    known = jobs(store)
    if len(known) < 2:
        return None, []
    ours = _scheduler_job(inventory)
    if ours in known:
        return ours, []
    what = f"samples of {len(known)} jobs, none of them this run's ({ours or 'not on record'})"
    return ours or "-", [f"{what}; expected its job id, so no figure"]


def _scheduler_job(inventory: Inventory) -> str | None:
    for artifact in inventory.of(Role.MANIFEST):
        try:
            return read_record(Path(inventory.root) / artifact.path, Manifest).slurm_job_id
        except InputError:
            return None
    return None


def _empty(
    run_id: str, file: str | None, reason: Reason, problems: list[Problem]
) -> TelemetrySummary:
    nulls = ["window_start_unix_s", "window_end_unix_s", "sampling_interval_s"]
    return TelemetrySummary(
        run_id=run_id,
        file=file,
        window_start_unix_s=None,
        window_end_unix_s=None,
        sampling_interval_s=None,
        gpus=[],
        problems=problems,
        reasons=dict.fromkeys([*nulls, *([] if file else ["file"])], reason),
    )


def _summary(
    run_id: str, file: str, scene: Scene, window: Window, problems: list[Problem]
) -> TelemetrySummary:
    every = cards(scene.store)
    times = {card: sample_times(scene.store, card) for card in every}
    found: dict[str, Any] = {
        "window_start_unix_s": window.start,
        "window_end_unix_s": window.end,
        "sampling_interval_s": _interval(scene.store),
    }
    reasons = {name: Reason.NOT_RECORDED for name, value in found.items() if value is None}
    if "sampling_interval_s" in reasons:
        reasons["sampling_interval_s"] = Reason.TOO_FEW_VALUES
    problems += [Problem(where=file, what=what) for what in vanished(scene, times)]
    return TelemetrySummary(
        run_id=run_id,
        file=file,
        window_kind=window.kind,
        excluded_unix_s=window.excluded,
        samples_outside_job=scene.store.outside,
        samples_duplicate=scene.store.duplicates,
        gpus=gpu_records(scene, times),
        figures=figures(scene),
        problems=[*problems, *window.problems],
        reasons=reasons,
        **found,
    )


def _interval(store: Store) -> float | None:
    """Median time between samples of a card; of a node where there are no cards."""
    names = [name for name, every in store.series.items() if any("card" in s.labels for s in every)]
    return store.interval_s(names or list(store.series))


def step(arguments: argparse.Namespace) -> Status:
    """Read the inventory, write the summary."""
    traces = read_record(arguments.traces, TraceSummary) if arguments.traces else None
    inventory = read_record(arguments.inventory, Inventory)
    program = _program() if arguments.evaluator == PROMQL else None
    try:
        found = summarize(inventory, traces, program)
    except StoreError as fault:
        return Status("fail", str(fault))
    write_record(arguments.out, found)
    done = "no telemetry" if found.file is None else f"{len(found.gpus)} GPUs"
    return ok_or_partial([f"{p.where}: {p.what}" for p in found.problems], done)


def _program() -> str:
    program = binary()
    if program is None:
        found = "no VictoriaMetrics server on PATH"
        raise InputError("--evaluator", found, f"one, or {BUILT_IN}", PROMQL)
    return program


def main() -> None:
    """Command line."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    arguments.add_argument("--traces", type=Path, help="tables/trace_summary.json")
    arguments.add_argument(
        "--evaluator", choices=(BUILT_IN, PROMQL), default=BUILT_IN,
        help="who answers the queries; both give the same numbers",
    )  # fmt: skip
    arguments.add_argument("--out", type=Path, required=True, help="telemetry_summary.json")
    run(step, arguments.parse_args())


if __name__ == "__main__":
    main()
