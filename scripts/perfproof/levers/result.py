"""From a run's records to what the policy learns from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from perfproof.core.errors import unknown
from perfproof.foms.agree import FIELDS, differences
from perfproof.foms.compare import METRICS
from perfproof.foms.known import record
from perfproof.levers.eligible import Facts, eligibility, matches
from perfproof.levers.faults import NON_FINITE, cause_of, fault_of
from perfproof.levers.fingerprint import fingerprint
from perfproof.levers.proof import findings
from perfproof.schema.base import Reason
from perfproof.schema.claims import Verdict, VerifiedSet
from perfproof.schema.cluster import EndState, RunEnding
from perfproof.schema.config import Cluster
from perfproof.schema.foms import Foms, LossVerdict
from perfproof.schema.levers import Fingerprint, Lever, LeverCatalog
from perfproof.schema.loop import Measurement, Noise, ProofFinding, Result
from perfproof.schema.run import Manifest

METRIC = "throughput_samples_per_s"
_WORK = frozenset(
    {
        "nominal_batch_per_rank",
        "realised_batches_per_rank",
        "batches_per_epoch",
        "samples_per_epoch",
        "partial_step_fraction",
    }
)


@dataclass(frozen=True)
class Seen:
    """The records of one run; None is a record that it did not leave."""

    manifest: Manifest
    ending: RunEnding | None
    foms: Foms | None
    kernels: frozenset[str] | None
    silent: bool
    """Whether no rank wrote a line."""
    attempts: Sequence[Manifest] = ()
    """Earlier tries at the same run, which cost node-hours too."""


def result_of(
    asked: Measurement,
    seen: Seen,
    catalog: LeverCatalog,
    site: Cluster,
    *,
    against: Seen | None = None,
    verified: Iterable[VerifiedSet] = (),
    metric: str = METRIC,
) -> Result:
    """The run as the policy needs it. Raises InputError for a lever that the catalog lacks."""
    manifest, foms = seen.manifest, seen.foms
    cause = _cause(seen)
    ending = fault_of(cause).ending
    figures = foms if ending == "measured" else None
    levers = _levers(manifest, catalog)
    return record(
        Result,
        measurement=asked,
        ending=ending,
        cause=Reason.NOT_APPLICABLE if cause == EndState.COMPLETED else cause,
        value=_figure(figures, metric),
        final_loss=_field(figures, "final_loss"),
        non_finite_count=_field(figures, "non_finite_count"),
        differs=_differs(seen, against, catalog, metric) if figures and against else [],
        proof=_proof(levers, seen, against),
        node_list=manifest.node_list or Reason.NOT_RECORDED,
        node_hours=_node_hours([*seen.attempts, manifest]),
        fingerprint=fingerprint(manifest),
        claimed=_claimed(verified),
        known_noise=_known_noise(catalog, fingerprint(manifest)),
        ineligible=ineligible(catalog, manifest, site),
    )


def _cause(seen: Seen) -> str:
    cause = cause_of(seen.manifest.state, seen.ending, silent=seen.silent)
    diverged = seen.foms is not None and seen.foms.loss_verdict is LossVerdict.NON_FINITE
    return NON_FINITE if cause == EndState.COMPLETED and diverged else cause


def _figure(foms: Foms | None, metric: str) -> float | Reason:
    """The figure; of a run that did not complete there is none."""
    if metric not in METRICS:
        raise unknown("observe", "metric", metric, METRICS)
    if foms is None:
        return Reason.RUN_INCOMPLETE
    value = METRICS[metric].value(foms)
    return foms.reasons[metric] if value is None else value


def _field(foms: Foms | None, name: str) -> object:
    if foms is None:
        return Reason.RUN_INCOMPLETE
    value = getattr(foms, name)
    return foms.reasons[name] if value is None else value


def _levers(manifest: Manifest, catalog: LeverCatalog) -> list[Lever]:
    by_id = {lever.id: lever for lever in catalog.levers}
    for name in manifest.resolved.levers:
        if name not in by_id:
            raise unknown(f"levers of {catalog.model}", "lever", name, by_id)
    return [by_id[name] for name in manifest.resolved.levers]


def _differs(seen: Seen, against: Seen, catalog: LeverCatalog, metric: str) -> list[str]:
    """Integrity fields unlike the reference's that no lever of one side alone may change."""
    if seen.foms is None or against.foms is None:
        return []
    mine = {lever.id: lever for lever in _levers(seen.manifest, catalog)}
    theirs = {lever.id: lever for lever in _levers(against.manifest, catalog)}
    meant = [(mine | theirs)[name] for name in mine.keys() ^ theirs.keys()]
    allow = frozenset(field for lever in meant for field in _may_change(lever))
    if METRICS[metric].unit == "s":
        # A rate is per sample; a time of other work says nothing, whatever the lever means to do.
        allow -= _WORK
    return differences([against.foms], [seen.foms], metric, allow)


def _may_change(lever: Lever) -> list[str]:
    for name in lever.may_change:
        if name not in FIELDS:
            raise unknown(f"lever {lever.id}", "integrity field", name, FIELDS)
    return lever.may_change


def _proof(levers: Iterable[Lever], seen: Seen, against: Seen | None) -> list[ProofFinding]:
    other = against.manifest if against else None
    return [
        found for lever in levers for found in findings(lever, seen.manifest, seen.kernels, other)
    ]


def _node_hours(tries: Sequence[Manifest]) -> float | Reason:
    """Nodes x duration of all tries, without the queue."""
    if tries[-1].duration_s is None:
        return tries[-1].reasons["duration_s"]
    return sum((t.duration_s or 0.0) * t.resolved.nodes for t in tries) / 3600


def _claimed(verified: Iterable[VerifiedSet]) -> dict[str, float]:
    """Levers that verified claims name, each with the largest share of step time at stake."""
    shares: dict[str, float] = {}
    for claim in (claim for found in verified for claim in found.claims):
        if claim.verdict is Verdict.VERIFIED and claim.share_of_step is not None:
            for lever in claim.levers:
                shares[lever] = max(shares.get(lever, 0.0), claim.share_of_step)
    return dict(sorted(shares.items()))


def _known_noise(catalog: LeverCatalog, run: Fingerprint) -> list[Noise]:
    """Noise seen under this run's conditions, the best known first."""
    found = [known for known in catalog.noise if matches(known.fingerprint, run)]
    best = sorted(found, key=lambda known: -known.df)
    return [Noise(sd=known.sd, df=known.df, source=known.source) for known in best]


def ineligible(catalog: LeverCatalog, manifest: Manifest, site: Cluster) -> dict[str, str]:
    """Levers that make no sense under this run's conditions, those of its own trial aside."""
    facts = Facts.of_a_run(manifest, site)
    today = datetime.fromisoformat(manifest.started_at).date()
    reasons = {
        lever.id: eligibility(lever, facts, today)
        for lever in catalog.levers
        if lever.id not in manifest.resolved.levers
    }
    return {name: why for name, why in sorted(reasons.items()) if why}
