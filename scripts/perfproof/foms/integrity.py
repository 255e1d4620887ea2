"""The integrity vector of one run: what it did, apart from how fast."""

from __future__ import annotations

from perfproof.foms import figures
from perfproof.foms.known import Known, known, need, record
from perfproof.foms.logs import RunLog
from perfproof.foms.memory import reserved_bytes
from perfproof.foms.sources import Sources
from perfproof.foms.views import Run
from perfproof.schema.base import Reason
from perfproof.schema.foms import Integrity
from perfproof.schema.traces import TraceSummary


def integrity_of(
    run: Run, logs: RunLog, sources: Sources, traces: TraceSummary | None
) -> Integrity:
    """The integrity vector of a run."""
    manifest, log = sources.manifest, run.log
    resolved = manifest.resolved if manifest else None
    unknown = sources.no_manifest
    no_log = run.why_no_step() if log is None or not log.formats else Reason.NO_STEP_TIMES_IN_LOG
    return record(
        Integrity,
        model=_model(sources),
        workload=resolved.workload.value if resolved else unknown,
        cluster=resolved.cluster if resolved else unknown,
        log_format="+".join(log.formats) if log and log.formats else no_log,
        step_time_source=run.steps.source if run.steps and run.steps.steady.any() else no_log,
        ranks=run.layout.ranks,
        nominal_batch_per_rank=run.layout.batch_size,
        realised_batches_per_rank=known(lambda: figures.realised_sizes(run)),
        batches_per_epoch=known(lambda: figures.batches_per_epoch(run)),
        samples_per_epoch=known(lambda: figures.samples_per_epoch(run)),
        partial_step_fraction=known(lambda: figures.partial_step_fraction(run)),
        dtype=_dtype(run, sources),
        node_list=manifest.node_list if manifest else unknown,
        device_name=known(lambda: _device(sources, traces)),
        hbm_reserved_bytes=known(lambda: reserved_bytes(logs, sources)),
        profiled_steps_excluded=figures.excluded_as_profiled(run),
        steady_steps=len(figures.steady_times(run)),
        recipe_digest=manifest.recipe_digest if manifest else unknown,
    )


def _dtype(run: Run, sources: Sources) -> Known[str]:
    """As the trainer printed it, else as rank 0 saw its parameters, else as configured."""
    rank0 = sources.manifest.rank0 if sources.manifest else None
    reported = rank0.dtype.removeprefix("torch.") if rank0 else None
    printed = run.log.dtype if run.log else None
    if known_dtype := printed or reported:
        return known_dtype
    contradicted = "dtype" in sources.contradicted
    return sources.dtype or (Reason.DISAGREES if contradicted else Reason.NOT_RECORDED)


def _model(sources: Sources) -> Known[str]:
    if sources.manifest:
        return sources.manifest.resolved.recipe.model
    contradicted = "meta_model" in sources.contradicted
    return sources.meta_model or (Reason.DISAGREES if contradicted else sources.no_manifest)


def _device(sources: Sources, traces: TraceSummary | None) -> str:
    manifest = sources.manifest
    if manifest and manifest.rank0:
        return manifest.rank0.device.name
    named = [rank.device_name for rank in traces.ranks if rank.device_name] if traces else []
    return need(named[0] if named else None, sources.no_manifest)
