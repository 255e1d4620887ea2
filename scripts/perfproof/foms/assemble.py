"""`foms.json` of one run from its logs and what surrounds them."""

from __future__ import annotations

from perfproof.foms import figures
from perfproof.foms.known import Known, known, need, record
from perfproof.foms.layout import layout_of
from perfproof.foms.logs import RunLog, read_logs
from perfproof.foms.losses import loss_curve, loss_verdict
from perfproof.foms.memory import reserved_bytes, reserved_fraction
from perfproof.foms.sources import Sources, read_sources
from perfproof.foms.views import Run, run_of
from perfproof.schema.base import Problem, Reason
from perfproof.schema.foms import Foms, Integrity, LossPoint, Primary
from perfproof.schema.run import Inventory
from perfproof.schema.traces import TraceSummary


def foms_of(inventory: Inventory, traces: TraceSummary | None = None) -> Foms:
    """Figures of merit of the run in `inventory`; every gap has a reason, every fault a line."""
    sources, logs = read_sources(inventory), read_logs(inventory)
    layout = layout_of(logs.log, sources, traces)
    run = run_of(logs.log, layout, sources, traces)
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
        hbm_reserved_bytes=known(lambda: reserved_bytes(logs.log, sources)),
        hbm_reserved_fraction=known(lambda: reserved_fraction(logs.log, sources)),
        loss_curve=curve,
        final_loss=_final_loss(logs, curve),
        non_finite_count=count,
        loss_verdict=loss_verdict(curve, count),
        integrity=_integrity(run, sources, traces),
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
        return Reason.NO_LOG
    if not curve:
        return Reason.NO_LOSS_LINES
    return Reason.NON_FINITE if curve[-1].loss is None else curve[-1].loss


def _integrity(run: Run, sources: Sources, traces: TraceSummary | None) -> Integrity:
    manifest, log = sources.manifest, run.log
    resolved = manifest.resolved if manifest else None
    no_log = run.why_no_step() if log is None or not log.formats else Reason.NO_STEP_TIMES_IN_LOG
    return record(
        Integrity,
        model=(resolved.recipe.model if resolved else sources.meta_model) or Reason.NO_MANIFEST,
        workload=resolved.workload.value if resolved else Reason.NO_MANIFEST,
        log_format="+".join(log.formats) if log and log.formats else no_log,
        step_time_source=run.steps.source if run.steps and run.steps.steady.any() else no_log,
        ranks=run.layout.ranks,
        nominal_batch_per_rank=run.layout.batch_size,
        realised_batches_per_rank=known(lambda: figures.realised_sizes(run)),
        batches_per_epoch=known(lambda: figures.batches_per_epoch(run)),
        samples_per_epoch=known(lambda: figures.samples_per_epoch(run)),
        partial_step_fraction=known(lambda: figures.partial_step_fraction(run)),
        dtype=_dtype(run, sources),
        node_list=manifest.node_list if manifest else Reason.NO_MANIFEST,
        device_name=known(lambda: _device(sources, traces)),
        hbm_reserved_bytes=known(lambda: reserved_bytes(log, sources)),
        profiled_steps_excluded=figures.excluded_as_profiled(run),
        steady_steps=len(figures.steady_times(run)),
        recipe_digest=manifest.recipe_digest if manifest else Reason.NO_MANIFEST,
    )


def _dtype(run: Run, sources: Sources) -> Known[str]:
    """As the trainer printed it, else as rank 0 saw its parameters, else as configured."""
    rank0 = sources.manifest.rank0 if sources.manifest else None
    reported = rank0.dtype.removeprefix("torch.") if rank0 else None
    printed = run.log.dtype if run.log else None
    return printed or reported or sources.dtype or Reason.NOT_RECORDED


def _device(sources: Sources, traces: TraceSummary | None) -> str:
    manifest = sources.manifest
    if manifest and manifest.rank0:
        return manifest.rank0.device.name
    named = [rank.device_name for rank in traces.ranks if rank.device_name] if traces else []
    return need(named[0] if named else None, Reason.NO_MANIFEST)


def _problems(inventory: Inventory, logs: RunLog, sources: Sources, run: Run) -> list[Problem]:
    """Faults of files, contradictions between them, and what kept the main figure away."""
    problems = [*sources.problems, *logs.problems]
    problems += [Problem(where=inventory.run_id, what=what) for what in run.layout.conflicts]
    where = logs.where or inventory.run_id
    if logs.log is None:
        what = "no training log that can be read; expected the trainer's output"
        return [*problems, Problem(where=where, what=what)]
    if isinstance(known(lambda: figures.throughput(run)), Reason):
        problems.append(Problem(where=where, what=_why_no_throughput(run)))
    return problems


def _why_no_throughput(run: Run) -> str:
    steps = len(run.steps.steps) if run.steps else 0
    reason = known(lambda: figures.throughput(run))
    seen = f"{steps} steps and {len(run.epochs.epochs)} epochs in the log"
    return f"no throughput ({reason}): {seen}; expected steady, unprofiled ones and their batch"
