"""What a loop is: model, place, baseline, levers and the rules of its decisions."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from perfproof.core.config import load_cluster, load_levers
from perfproof.core.errors import InputError, unknown
from perfproof.core.files import digest_record, read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.foms.compare import METRICS
from perfproof.levers.eligible import Facts, eligibility
from perfproof.levers.result import METRIC
from perfproof.schema.config import ResolvedRecipe, Settings
from perfproof.schema.levers import Lever, LeverCatalog
from perfproof.schema.loop import Candidate, LoopSpec, LoopState
from perfproof.training.resolve import resolve
from perfproof.training.trial import ids_of, trial_levers, trial_name

_AUTO = "auto"


def define(root: Path, settings: Settings) -> LoopSpec:
    """The loop that `settings` ask for. Pure reads of `config/`; no clock, no machine."""
    baseline = _resolve(root, settings, settings.trial)
    catalog = load_levers(root, settings.model)
    known = [lever.id for lever in catalog.levers]
    for name in settings.levers:
        if name not in known:
            raise unknown("config", "lever", name, known)
    return LoopSpec(
        model=settings.model,
        workload=baseline.workload.value,
        cluster=settings.cluster,
        nodes=settings.nodes,
        metric=METRIC,
        unit=METRICS[METRIC].unit,
        direction=METRICS[METRIC].direction,
        start=settings.trial,
        baseline_digest=digest_record(baseline),
        decision=settings.decision,
        levers=_candidates(root, settings, catalog, baseline),
    )


def loop_id(settings: Settings, spec: LoopSpec) -> str:
    """`loop` of the settings, or the first digits of what defines the loop."""
    return digest_record(spec)[:10] if settings.loop == _AUTO else settings.loop


def check_unchanged(spec: LoopSpec, first: Path) -> None:
    """Refuse to go on with a loop whose steps were made under another definition."""
    if not first.is_file():
        return
    old = read_record(first, LoopState).spec.model_dump(mode="json")
    new = spec.model_dump(mode="json")
    changed = sorted(key for key in new if new[key] != old[key])
    if changed:
        expected = "what the loop began with; take another name: --config loop=…"
        raise InputError(first, f"a loop with other {', '.join(changed)}", expected, "spec")


def _resolve(root: Path, settings: Settings, trial: str) -> ResolvedRecipe:
    return resolve(
        root=root,
        model=settings.model,
        trial=trial,
        cluster=settings.cluster,
        nodes=settings.nodes,
        workload=settings.workload,
    )


def _candidates(
    root: Path, settings: Settings, catalog: LeverCatalog, baseline: ResolvedRecipe
) -> list[Candidate]:
    facts = Facts.before_the_run(baseline, load_cluster(root, settings.cluster))
    conflicts = _conflicts(root, settings, catalog)
    return [
        Candidate(
            id=lever.id,
            kind=lever.kind,
            conflicts=conflicts[lever.id],
            expected_low=lever.expected.low if lever.expected else None,
            expected_high=lever.expected.high if lever.expected else None,
            risk=lever.risk,
            classes=list(lever.classes),
            changes_numerics=lever.changes_numerics,
            changes_model=lever.changes_model,
            effect_proof=lever.effect_proof,
            discriminates=lever.kind == "diagnostic" and "training.dtype" in lever.set,
            asked=lever.id in settings.levers,
            not_eligible=_not_eligible(root, settings, lever, facts),
        )
        for lever in catalog.levers
    ]


def _not_eligible(root: Path, settings: Settings, lever: Lever, facts: Facts) -> str | None:
    asked, begun_with = settings.levers, ids_of(settings.trial)
    if lever.id in begun_with:
        return "already in the trial that the loop begins with"
    if asked and lever.id not in asked:
        return "not among the levers that were asked for"
    # Without a date: verdicts that end are judged by that of the baseline's first run.
    if reason := eligibility(lever, facts):
        return reason
    switch = "training.dtype" in lever.set
    if lever.kind == "diagnostic" and not switch and lever.id not in asked:
        return "a diagnostic is measured when `levers` names it"
    try:
        _resolve(root, settings, trial_name([*begun_with, lever.id]))
    except InputError as fault:
        return f"cannot be tried on '{settings.trial}': {fault.found}, expected {fault.expected}"
    return None


def _conflicts(root: Path, settings: Settings, catalog: LeverCatalog) -> dict[str, list[str]]:
    """Levers that cannot share a trial, in both directions: stated ones, and equal keys."""
    where = root / "config" / "levers" / f"{settings.model}.yaml"
    found: dict[str, list[str]] = {lever.id: [] for lever in catalog.levers}
    for first, second in itertools.combinations(sorted(found), 2):
        try:
            trial_levers(f"{first}+{second}", catalog, where)
        except InputError:
            found[first].append(second)
            found[second].append(first)
    return {lever: sorted(others) for lever, others in found.items()}


def main() -> None:
    """`python -m perfproof.levers.define`."""
    cli = parser("Define a loop.")
    cli.add_argument("--root", type=Path, default=Path(), help="directory that holds config/")
    cli.add_argument("--settings", required=True, help="settings of the invocation, JSON")
    cli.add_argument("--out", type=Path, required=True, help="loop.json to write")
    run(_step, cli.parse_args())


def _step(arguments: argparse.Namespace) -> Status:
    try:
        settings = Settings.model_validate_json(arguments.settings)
    except ValueError as fault:
        raise InputError("--settings", str(fault), "settings as JSON") from None
    spec = define(arguments.root, settings)
    check_unchanged(spec, arguments.out.parent / "steps" / "0.json")
    write_record(arguments.out, spec)
    open_ones = sum(lever.not_eligible is None for lever in spec.levers)
    return Status("ok", f"{open_ones} of {len(spec.levers)} levers may be tried")


if __name__ == "__main__":
    main()
