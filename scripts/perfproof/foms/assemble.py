"""`foms.json` of one run from its logs and what surrounds them."""

from __future__ import annotations

from perfproof.foms import figures
from perfproof.foms.energy import telemetry_figures
from perfproof.foms.integrity import integrity_of
from perfproof.foms.known import Known, known, record
from perfproof.foms.layout import layout_of
from perfproof.foms.logs import RunLog, read_logs
from perfproof.foms.losses import loss_curve, loss_verdict
from perfproof.foms.memory import reserved_bytes, reserved_fraction
from perfproof.foms.oddities import bad_times, refuse_other_runs, started_anew
from perfproof.foms.sources import Sources, read_sources
from perfproof.foms.views import Run, run_of
from perfproof.schema.base import Problem, Reason
from perfproof.schema.foms import Foms, LossPoint, Primary
from perfproof.schema.run import Inventory
from perfproof.schema.telemetry import TelemetrySummary
from perfproof.schema.traces import TraceSummary


def foms_of(
    inventory: Inventory,
    traces: TraceSummary | None = None,
    telemetry: TelemetrySummary | None = None,
) -> Foms:
    """Figures of merit of the run in `inventory`; every gap has a reason, every fault a line."""
    sources, logs = read_sources(inventory), read_logs(inventory)
    refuse_other_runs(logs, sources)
    layout = layout_of(logs.log, sources, traces)
    run = run_of(logs, layout, sources, traces)
    curve = loss_curve(logs.log) if logs.log else []
    rate = known(lambda: figures.throughput(run))
    value, method = (rate, rate) if isinstance(rate, Reason) else rate
    times = figures.steady_times(run)
    count = logs.log.non_finite if logs.log else 0
    return record(
        Foms,
        run_id=inventory.run_id,
        primary=_primary(value, method),
        step_time_s=figures.distribution(times) if len(times) else run.why_no_step(),
        steady_step_times_s=times.tolist(),
        throughput_samples_per_s=value,
        throughput_method=method,
        epoch_time_s=known(lambda: figures.epoch_time(run)),
        samples_per_epoch=known(lambda: figures.samples_per_epoch(run)),
        hbm_reserved_bytes=known(lambda: reserved_bytes(logs, sources)),
        hbm_reserved_fraction=known(lambda: reserved_fraction(logs, sources)),
        loss_curve=curve,
        final_loss=_final_loss(logs, curve),
        non_finite_count=count if logs.log else logs.missing,
        loss_verdict=loss_verdict(curve, count),
        integrity=integrity_of(run, logs, sources, traces),
        telemetry=telemetry_figures(telemetry, value),
        problems=_problems(inventory, logs, sources, run),
    )


def _primary(value: Known[float], method: object) -> Primary:
    return record(
        Primary,
        name="throughput_samples_per_s",
        unit="samples/s",
        direction="higher",
        value=value,
        method=method,
    )


def _final_loss(logs: RunLog, curve: list[LossPoint]) -> Known[float]:
    if logs.log is None:
        return logs.missing
    if not curve:
        return Reason.NO_LOSS_LINES
    return Reason.NON_FINITE if curve[-1].loss is None else curve[-1].loss


def _problems(inventory: Inventory, logs: RunLog, sources: Sources, run: Run) -> list[Problem]:
    """Faults of files, contradictions between them, and what kept the main figure away."""
    problems = [*sources.problems, *logs.problems]
    problems += [Problem(where=inventory.run_id, what=what) for what in run.layout.remarks]
    where = logs.where or inventory.run_id
    if logs.log is None:
        if logs.missing is Reason.NO_LOG:
            what = "no training log that can be read; expected the trainer's output"
            problems.append(Problem(where=where, what=what))
        return problems
    problems += [Problem(where=where, what=what) for what in [*bad_times(run), *started_anew(run)]]
    if isinstance(known(lambda: figures.throughput(run)), Reason):
        problems.append(Problem(where=where, what=_why_no_throughput(run)))
    return problems


def _why_no_throughput(run: Run) -> str:
    steps = len(run.steps.steps) if run.steps else 0
    reason = known(lambda: figures.throughput(run))
    seen = f"{steps} steps and {len(run.epochs.epochs)} epochs in the log"
    return f"no throughput ({reason}): {seen}; expected steady, unprofiled ones and their batch"
