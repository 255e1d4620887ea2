"""The remedy probe: whether the largest verified claim's remedy helps, in five minutes at most."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from perfproof.core.config import load_cluster, load_levers
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.levers.define import define
from perfproof.levers.result import ineligible
from perfproof.schema.base import Reason
from perfproof.schema.claims import Verdict, VerifiedClaim, VerifiedSet
from perfproof.schema.config import Settings
from perfproof.schema.loop import LoopSpec, ProbeChoice
from perfproof.schema.run import Manifest

LIMIT_S = 300.0
# Pairs of runs: fewer give no interval, more are a loop's business.
PAIRS = range(2, 5)
# Between two runs: the scheduler, and the analysis of the first.
_BETWEEN_S = 10.0


def choose(
    claims: Sequence[VerifiedClaim], spec: LoopSpec, ineligible: dict[str, str], run_s: float | None
) -> ProbeChoice:
    """The first lever of the largest claim that may be tried, and how many pairs fit."""
    if run_s is None:
        return _none("the run's duration is not known")
    pairs = int(LIMIT_S / (2 * (run_s + _BETWEEN_S)))
    if pairs < PAIRS.start:
        return _none(f"a run takes {run_s:.0f} s: {2 * PAIRS.start} do not fit {LIMIT_S:.0f} s")
    open_ones = {
        c.id
        for c in spec.levers
        if c.kind == "lever" and not c.not_eligible and not c.changes_model
    } - ineligible.keys()
    named = [claim for claim in claims if claim.verdict is Verdict.VERIFIED and claim.levers]
    for claim in sorted(named, key=lambda c: -(c.share_of_step or 0.0)):
        lever = next((name for name in claim.levers if name in open_ones), None)
        if lever:
            why = f"claim {claim.id} names it"
            return ProbeChoice(
                lever=lever, claim=claim.id, pairs=min(pairs, PAIRS.stop - 1), why=why
            )
    return _none("no verified claim names a lever that may be tried here")


def _none(why: str) -> ProbeChoice:
    reasons = dict.fromkeys(("lever", "claim"), Reason.NOT_APPLICABLE)
    return ProbeChoice(lever=None, claim=None, pairs=0, why=why, reasons=reasons)


def probe_spec(root: Path, settings: Settings, choice: ProbeChoice) -> LoopSpec:
    """The loop that holds the chosen lever against the run's own trial, on one node."""
    if choice.lever is None:
        raise InputError("probe", "no lever", f"one to try; {choice.why}", "lever")
    decision = settings.decision.model_copy(update={"confirmation_pairs": choice.pairs})
    asked = settings.model_copy(update={"nodes": 1, "levers": [choice.lever], "decision": decision})
    # Fresh runs on both sides: the reported run was made before the claim was.
    first = settings.repetition + 1
    return define(root, asked).model_copy(update={"probe": choice.lever, "first_rep": first})


def main() -> None:
    """`python -m perfproof.levers.probe`."""
    cli = parser("Choose a remedy to try, or define the loop that tries it.")
    cli.add_argument("--root", type=Path, default=Path(), help="directory that holds config/")
    cli.add_argument("--settings", required=True, help="settings of the invocation, JSON")
    cli.add_argument("--run-dir", type=Path, help="choose for this run")
    cli.add_argument("--verified", type=Path, nargs="*", default=[], help="its verified claims")
    cli.add_argument("--choice", type=Path, help="define the loop of this choice")
    cli.add_argument("--out", type=Path, required=True, help="record to write")
    run(_step, cli.parse_args())


def _step(arguments: argparse.Namespace) -> Status:
    settings = Settings.model_validate_json(arguments.settings)
    if arguments.choice:
        choice = read_record(arguments.choice, ProbeChoice)
        write_record(arguments.out, probe_spec(arguments.root, settings, choice))
        return Status("ok", f"{choice.lever}: {choice.pairs} pairs of runs")
    manifest = read_record(arguments.run_dir / "manifest.json", Manifest)
    claims = [c for p in arguments.verified for c in read_record(p, VerifiedSet).claims]
    spec = define(arguments.root, settings.model_copy(update={"nodes": 1, "levers": []}))
    found = manifest.resolved
    catalog = load_levers(arguments.root, found.recipe.model)
    out = ineligible(catalog, manifest, load_cluster(arguments.root, found.cluster))
    choice = choose(claims, spec, out, manifest.duration_s)
    write_record(arguments.out, choice)
    return Status("ok", f"{choice.lever or 'nothing to probe'}: {choice.why}")


if __name__ == "__main__":
    main()
