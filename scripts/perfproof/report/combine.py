"""Combine verified claims, figures of merit, trace quality and telemetry into one record."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from perfproof import __version__
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.report.authors import scores
from perfproof.report.backend import cross_checked
from perfproof.report.card import run_card
from perfproof.report.facts import Facts
from perfproof.report.limits import limits
from perfproof.report.remedy import read_remedy
from perfproof.report.tables import profiled_step_s
from perfproof.report.verdict import sentence
from perfproof.schema.authors import AuthorRecord
from perfproof.schema.base import Problem, Reason
from perfproof.schema.claims import Verdict, VerifiedClaim, VerifiedSet
from perfproof.schema.cluster import RunEnding
from perfproof.schema.foms import Foms
from perfproof.schema.report import InputFile, Provenance, Quality, RemedyProbe, Report
from perfproof.schema.run import Inventory, Manifest, Role, State
from perfproof.schema.telemetry import TelemetrySummary
from perfproof.schema.tracelens import TraceBackend
from perfproof.schema.traces import TraceSummary

T = TypeVar("T")
_EMPTY_LOG = {Reason.NO_LOG, Reason.UNREADABLE, Reason.NO_STEP_LINES}


def combine(
    inventory: Inventory,
    foms: Foms,
    traces: TraceSummary,
    telemetry: TelemetrySummary,
    verified: Sequence[VerifiedSet],
    manifest: Manifest | None,
    profiled_step_s: float | None = None,
    problems: Sequence[Problem] = (),
    ending: RunEnding | None = None,
    remedy: RemedyProbe | None = None,
    backend: TraceBackend | None = None,
    authors: Sequence[AuthorRecord] = (),
) -> Report:
    """Rank the claims, say what was found and what cannot be. `InputError` if nothing is usable."""
    chosen = [backend] if backend else []
    _same_run(inventory, (foms, traces, telemetry, *verified, *authors, *chosen))
    _something_usable(inventory, foms, traces, telemetry, manifest)
    given = [cross_checked(claim, backend) for part in verified for claim in part.claims]
    unique, repeated = _each_id_once(given)
    claims = ranked(unique)
    by_verdict = {v: [c for c in claims if c.verdict is v] for v in Verdict}
    proven = by_verdict[Verdict.VERIFIED]
    card = run_card(foms, traces, manifest, ending)
    shapes = manifest.resolved.recipe.profile.record_shapes if manifest else None
    told = [inventory.problems, foms.problems, traces.problems, telemetry.problems]
    told += [part.problems for part in verified]
    told += _of_backend(backend)
    known = _unique([*problems, *repeated, *itertools.chain.from_iterable(told)])
    return Report(
        status=_status(known, foms, card.state),
        verdict=sentence(card, foms, traces, proven, [c for c in claims if c not in proven]),
        run=card,
        foms=foms,
        quality=[Quality(rank=r.rank, file=r.file, findings=r.findings) for r in traces.ranks],
        claims=proven,
        remedy_probe=remedy,
        refuted=by_verdict[Verdict.REFUTED],
        inconclusive=by_verdict[Verdict.INCONCLUSIVE],
        authors=scores(claims, authors),
        author_records=list(authors),
        trace_backend=backend,
        telemetry=telemetry,
        limits=limits(Facts(card, foms, traces, telemetry, profiled_step_s, shapes)),
        problems=known,
        provenance=_provenance(inventory),
    )


def _of_backend(backend: TraceBackend | None) -> list[list[Problem]]:
    """Where TraceLens was asked for by name, what kept it from reporting is an input's fault."""
    return [backend.problems] if backend and backend.asked == "tracelens" else []


def ranked(claims: Sequence[VerifiedClaim]) -> list[VerifiedClaim]:
    """Most share of step time first, unknown share last, then by id."""
    return sorted(claims, key=lambda c: (c.share_of_step is None, -(c.share_of_step or 0.0), c.id))


def _same_run(
    inventory: Inventory,
    parts: Sequence[
        Foms | TraceSummary | TelemetrySummary | VerifiedSet | AuthorRecord | TraceBackend
    ],
) -> None:
    for part in parts:
        if part.run_id != inventory.run_id:
            expected = f"'{inventory.run_id}', as in the inventory"
            raise InputError(type(part).__name__, f"'{part.run_id}'", expected, "run_id")


def _each_id_once(
    claims: Sequence[VerifiedClaim],
) -> tuple[list[VerifiedClaim], list[Problem]]:
    """Links lead to an id: of claims that share one the first stays, the others are told."""
    kept: dict[str, VerifiedClaim] = {}
    problems = []
    for claim in claims:
        if kept.setdefault(claim.id, claim) is not claim:
            what = f"id {claim.id} again, '{claim.statement[:80]}'; expected each id once"
            problems.append(Problem(where=f"verified/{claim.source.value}.json", what=what))
    return list(kept.values()), problems


def _something_usable(
    inventory: Inventory,
    foms: Foms,
    traces: TraceSummary,
    telemetry: TelemetrySummary,
    manifest: Manifest | None,
) -> None:
    """A run that ended badly is a result too: its manifest alone is worth a report."""
    log = foms.reasons.get("step_time_s") not in _EMPTY_LOG
    values = foms.primary.value is not None or foms.loss_curve
    trace = any(rank.events for rank in traces.ranks)
    ended_badly = manifest is not None and manifest.state not in {State.RUNNING, State.COMPLETED}
    if log or values or trace or ended_badly or any(gpu.samples for gpu in telemetry.gpus):
        return
    raise InputError(
        inventory.root,
        "no training step in a log, no readable trace, no telemetry sample",
        "the directory of a training run that left at least one of them",
    )


def _status(problems: Sequence[Problem], foms: Foms, state: str | None) -> Literal["ok", "partial"]:
    ended_well = state in {None, State.COMPLETED}
    return "ok" if ended_well and not problems and foms.primary.value is not None else "partial"


def _unique(problems: Sequence[Problem]) -> list[Problem]:
    """Stages read the same files; one problem is told once."""
    return list({(problem.where, problem.what): problem for problem in problems}.values())


def _provenance(inventory: Inventory) -> Provenance:
    inputs = [
        InputFile(path=a.path, role=a.role, size_bytes=a.size_bytes, blake3=a.blake3)
        for a in inventory.artifacts
    ]
    return Provenance(perfproof_version=__version__, inputs=inputs)


def _step(arguments: argparse.Namespace) -> Status:
    inventory = read_record(arguments.inventory, Inventory)
    traces = read_record(arguments.traces, TraceSummary)
    base = arguments.traces.parent.parent
    problems: list[Problem] = []
    report = combine(
        inventory,
        read_record(arguments.foms, Foms),
        traces,
        read_record(arguments.telemetry, TelemetrySummary),
        [read_record(path, VerifiedSet) for path in arguments.verified],
        _or_problem(lambda: _manifest(inventory), Path(inventory.root), problems),
        _or_problem(lambda: profiled_step_s(base, traces), base, problems),
        problems,
        _or_problem(lambda: _ending(inventory), Path(inventory.root), problems),
        read_remedy(arguments.probe),
        read_record(arguments.backend, TraceBackend) if arguments.backend else None,
        [read_record(path, AuthorRecord) for path in arguments.authors],
    )
    write_record(arguments.out, report)
    return _status_of(report)


def _manifest(inventory: Inventory) -> Manifest | None:
    """The run's manifest, if it left one."""
    found = inventory.of(Role.MANIFEST)
    return read_record(Path(inventory.root) / found[0].path, Manifest) if found else None


def _ending(inventory: Inventory) -> RunEnding | None:
    """How the run ended, if that was settled."""
    found = inventory.of(Role.ENDING)
    return read_record(Path(inventory.root) / found[0].path, RunEnding) if found else None


def _or_problem(read: Callable[[], T], base: Path, problems: list[Problem]) -> T | None:
    """What `read` returns; a file below `base` that cannot be used is a problem, not the end."""
    try:
        return read()
    except InputError as fault:
        key = f"{fault.key}: " if fault.key else ""
        where = Path(fault.where).relative_to(base).as_posix()
        problems.append(Problem(where=where, what=f"{key}{fault.found}; expected {fault.expected}"))
        return None


def _status_of(report: Report) -> Status:
    """The headline always; what was wrong with the input behind it."""
    problems = [f"{p.where}: {p.what}" for p in report.problems]
    if report.status == "ok" or not problems:
        return Status(report.status, report.verdict)
    return Status("partial", f"{report.verdict} Problems: {ok_or_partial(problems, '').reason}")


def main() -> None:
    """Command line."""
    cli = parser(__doc__ or "")
    cli.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    cli.add_argument("--foms", type=Path, required=True, help="foms.json")
    cli.add_argument("--traces", type=Path, required=True, help="tables/trace_summary.json")
    cli.add_argument("--telemetry", type=Path, required=True, help="telemetry_summary.json")
    cli.add_argument("--verified", type=Path, nargs="*", default=[], help="verified/*.json")
    cli.add_argument(
        "--probe", type=Path, nargs="*", default=[], help="probe/choice.json, last step of its runs"
    )
    cli.add_argument("--backend", type=Path, help="tracelens/backend.json")
    cli.add_argument("--authors", type=Path, nargs="*", default=[], help="authors/*.json")
    cli.add_argument("--out", type=Path, required=True, help="combined_report.json")
    run(_step, cli.parse_args())


if __name__ == "__main__":
    main()
