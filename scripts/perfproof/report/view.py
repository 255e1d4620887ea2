"""One run's page as text and pictures, before it becomes Markdown or HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from perfproof.core.errors import InputError
from perfproof.report import plots
from perfproof.report.authors import authors_grid, authors_note, rejections_grid
from perfproof.report.backend import backend_grid, backend_note
from perfproof.report.remedy import remedy_sentence
from perfproof.report.tables import PARTS, Timeline, Tops, timelines, tops
from perfproof.report.units import Missing, clip, number, shown
from perfproof.report.view_claims import ClaimView, claim_view
from perfproof.report.view_data import (
    Grid,
    findings_grid,
    inputs_grid,
    problems_grid,
    telemetry_fields,
    telemetry_grid,
    timeline_grid,
    tops_grid,
    traces_grid,
)
from perfproof.report.view_foms import Field, figures, integrity, joined, seconds
from perfproof.schema.base import REASON_MEANING
from perfproof.schema.foms import Foms
from perfproof.schema.report import Report, RunCard
from perfproof.schema.traces import TraceSummary

T = TypeVar("T")
MAX_RANKS = 16
MAX_TOP = 12


@dataclass(frozen=True)
class View:
    """Everything a template lays out, in its order on the page."""

    title: str
    status: str
    verdict: str
    nodes: str
    card: list[Field]
    unknown: list[Field]
    foms: list[Field]
    integrity: list[Field]
    claims: list[ClaimView]
    remedy: str
    where: plots.Plot | None
    where_note: str
    where_table: Grid | None
    refuted: list[ClaimView]
    inconclusive: list[ClaimView]
    authors: Grid
    authors_note: str
    rejections: Grid | None
    traces: Grid
    findings: Grid
    problems: Grid
    backend: str
    backend_table: Grid | None
    telemetry: list[Field]
    gpus: Grid
    plots: list[plots.Plot]
    absent_plots: list[str]
    top_table: Grid | None
    losses: Grid
    limits: list[str]
    inputs: Grid
    version: str


def build(report: Report, summary: TraceSummary, base: Path) -> tuple[View, list[str]]:
    """The view, and one line for each table that could not be read. `base` holds `tables/`."""
    faults: list[str] = []
    rows = _read(lambda: timelines(base, summary), faults) or []
    top = _read(lambda: tops(base, summary, MAX_TOP), faults)
    known, unknown = card_fields(report.run)
    pictures, absent = _plots(report.foms, top)
    view = View(
        title=report.run.run_id,
        status=report.status,
        verdict=report.verdict,
        nodes=shown(report.run, "node_list", joined),
        card=known,
        unknown=unknown,
        foms=figures(report.foms),
        integrity=integrity(report.foms.integrity),
        claims=[claim_view(claim) for claim in report.claims],
        remedy=remedy_sentence(report.remedy_probe) if report.remedy_probe else "",
        where=plots.where_the_step_goes(_most_idle(rows)) if rows else None,
        where_note=_where_note(rows, summary),
        where_table=timeline_grid(_most_idle(rows)) if rows else None,
        refuted=[claim_view(claim) for claim in report.refuted],
        inconclusive=[claim_view(claim) for claim in report.inconclusive],
        authors=authors_grid(report),
        authors_note=authors_note(report),
        rejections=rejections_grid(report) if report.author_records else None,
        traces=traces_grid(summary),
        findings=findings_grid(report),
        problems=problems_grid(report),
        backend=backend_note(report.trace_backend),
        backend_table=backend_grid(report.trace_backend),
        telemetry=telemetry_fields(report.telemetry),
        gpus=telemetry_grid(report.telemetry),
        plots=pictures,
        absent_plots=absent,
        top_table=tops_grid(top) if top else None,
        losses=losses_grid(report.foms),
        limits=report.limits,
        inputs=inputs_grid(report),
        version=report.provenance.perfproof_version,
    )
    return view, faults


def card_fields(card: RunCard) -> tuple[list[Field], list[Field]]:
    """The run card below the node list: what is known, and by reason what is not."""
    fields = [
        Field("Model", shown(card, "model")),
        Field("Trial", shown(card, "trial")),
        Field("Workload", shown(card, "workload")),
        Field("Device", shown(card, "device_name")),
        Field("Ranks", shown(card, "ranks", number)),
        Field("Type", shown(card, "dtype")),
        Field("State", shown(card, "state")),
        Field("Exit code", shown(card, "exit_code")),
        Field("Started", shown(card, "started_at")),
        Field("Duration", shown(card, "duration_s", seconds)),
        Field("Recipe digest", shown(card, "recipe_digest", partial(clip, length=17))),
    ]
    unknown: dict[str, list[str]] = {}
    for field in fields:
        if isinstance(field.text, Missing):
            unknown.setdefault(field.text, []).append(field.label)
    known = [field for field in fields if not isinstance(field.text, Missing)]
    return known, [Field(", ".join(labels), Missing(why)) for why, labels in unknown.items()]


def losses_grid(foms: Foms) -> Grid:
    """Loss of every epoch."""
    rows = [
        [str(point.epoch), shown(point, "loss", lambda loss: number(loss, 6))]
        for point in foms.loss_curve
    ]
    return Grid("Loss by epoch", ["epoch", "loss"], rows)


def _read(read: Callable[[], T], faults: list[str]) -> T | None:
    try:
        return read()
    except InputError as fault:
        faults.append(str(fault))
        return None


def _most_idle(rows: list[Timeline]) -> list[Timeline]:
    """The ranks that fit on a page: those whose GPU idles most, in rank order."""
    kept = sorted(rows, key=lambda row: (-row.share(len(PARTS) - 1), row.rank))[:MAX_RANKS]
    return sorted(kept, key=lambda row: row.rank)


def _where_note(rows: list[Timeline], summary: TraceSummary) -> str:
    if not rows:
        return "No rank has a device timeline that can be read, so this cannot be drawn."
    notes = []
    if len(rows) > MAX_RANKS:
        notes.append(f"The {MAX_RANKS} of {len(rows)} ranks whose GPU idles most.")
    bad = [r.rank for r in summary.ranks if any(f.severity == "bad" for f in r.findings)]
    if bad:
        notes.append(f"Do not trust the bars of rank {joined(bad)}: their traces are damaged.")
    return " ".join(notes)


def _plots(foms: Foms, top: Tops | None) -> tuple[list[plots.Plot], list[str]]:
    """The pictures that the data allow, and one sentence for each that it does not."""
    pictures, absent = [], []
    if foms.steady_step_times_s:
        pictures.append(plots.steady_steps(foms))
    else:
        absent.append(f"No steps to draw: {_why(foms, 'step_time_s')}.")
    if top:
        pictures.append(plots.top_bars(top))
    else:
        absent.append("No kernels or operators to draw: no trace table has any.")
    if foms.loss_curve:
        pictures.append(plots.loss_curve(foms))
    else:
        absent.append(f"No loss to draw: {_why(foms, 'final_loss')}.")
    return pictures, absent


def _why(foms: Foms, field: str) -> str:
    reason = foms.reasons.get(field)
    return REASON_MEANING[reason] if reason else "the run has no such values"
