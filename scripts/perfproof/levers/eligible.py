"""Whether a lever may be tried under given conditions, and why not. Pure: the date is given.

What is not known (before the baseline has run: architecture, versions) decides nothing: the
requirement stays open, the verdict does not hold. A run settles it: a requirement that still cannot
be checked is then not met, so nothing is tried on a hunch, and a verdict that cannot be checked
still does not hold, so no block reaches beyond where it was seen.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass

from perfproof.levers.fingerprint import CPU, Vendor, before, fingerprint
from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.schema.levers import CLOSING, Fingerprint, Lever, Requires, Verdict
from perfproof.schema.run import Manifest
from perfproof.training.features import offered

_VERSIONS = frozenset({"torch", "rocm", "cuda", "driver"})


@dataclass(frozen=True)
class Facts:
    """What is known of the runs of a loop; None is not known."""

    fingerprint: Fingerprint
    vendor: Vendor | None
    features: frozenset[str]
    """Switches that the trainer offers, see `perfproof.training.features`."""
    ran: bool
    """Whether this is from a run; before it, what is not known may still turn out well."""

    @classmethod
    def before_the_run(cls, resolved: ResolvedRecipe, site: Cluster) -> Facts:
        """What recipe and cluster file say. A cluster without GPU computes on `cpu`."""
        known = before(resolved)
        if site.vendor == "none":
            known = known.model_copy(update={"arch": CPU})
        return cls(known, site.vendor, _offered(resolved, site), ran=False)

    @classmethod
    def of_a_run(cls, manifest: Manifest, site: Cluster) -> Facts:
        """What rank 0 saw; without its report what was known before."""
        if manifest.rank0 is None:
            return cls.before_the_run(manifest.resolved, site)
        vendor, features = manifest.rank0.device.vendor, _offered(manifest.resolved, site)
        return cls(fingerprint(manifest), vendor, features, ran=True)


def _offered(resolved: ResolvedRecipe, site: Cluster) -> frozenset[str]:
    return offered(resolved.recipe.model, resolved.workload, site)


def eligibility(lever: Lever, run: Facts, today: datetime.date | None = None) -> str | None:
    """None where the lever may be tried, else why not in one line.

    Without a date, verdicts that expire some day do not hold.
    """
    unmet = next(_unmet(lever.requires, run), None)
    if unmet:
        return unmet
    verdict = standing(lever, run.fingerprint, today)
    if verdict is None or verdict.verdict not in CLOSING:
        return None
    until = f", until {verdict.expires}" if verdict.expires else ""
    return f"{verdict.verdict} since {verdict.date}{until}: {' '.join(verdict.evidence.split())}"


def standing(lever: Lever, run: Fingerprint, today: datetime.date | None) -> Verdict | None:
    """The verdict that holds for the run: the newest that matches and has not expired.

    Of several of one day a closing one holds.
    """
    holding = [
        verdict
        for verdict in lever.verdicts
        if matches(verdict.fingerprint, run)
        and (verdict.expires is None or (today is not None and today < verdict.expires))
    ]
    return max(holding, key=lambda v: (v.date, v.verdict in CLOSING), default=None)


def matches(seen: Fingerprint, run: Fingerprint) -> bool:
    """Whether a verdict's conditions are the run's: null there matches all, null here nothing."""
    for name in Fingerprint.model_fields:
        wanted, found = getattr(seen, name), getattr(run, name)
        if wanted is not None and not _agrees(name, wanted, found):
            return False
    return True


def _agrees(name: str, wanted: object, found: object) -> bool:
    if name not in _VERSIONS or found is None:
        return bool(wanted == found)
    parts, all_parts = _components(str(wanted)), _components(str(found))
    return all_parts[: len(parts)] == parts


def _components(version: str) -> list[str]:
    """`2.10.0+rocm7.2` to 2, 10, 0, rocm7, 2: `2.1` is no beginning of `2.10`."""
    return re.split(r"[.+_-]", version)


def _unmet(needs: Requires, run: Facts) -> Iterator[str]:
    """Requirements that are not met, one line each."""
    known = run.fingerprint
    workload = known.workload.value if known.workload else None
    choices: tuple[tuple[str, list[str], str | None], ...] = (
        ("a GPU of", ["amd", "nvidia"] if needs.gpu else [], run.vendor),
        ("vendor", list(needs.vendor), run.vendor),
        ("arch", needs.arch, known.arch),
        ("dtype", list(needs.dtype), known.dtype),
        ("workload", [kind.value for kind in needs.workload], workload),
    )
    for name, allowed, found in choices:
        if allowed and found not in allowed and (found is not None or run.ran):
            yield f"needs {name} {' or '.join(allowed)}, found {found or 'nothing that says'}"
    for name, least, count in (
        ("nodes", needs.nodes_min, known.nodes),
        ("ranks", needs.ranks_min, known.ranks),
    ):
        if (count is not None or run.ran) and least > (count or 1):
            yield f"needs {least} {name} or more, found {count or 'nothing that says'}"
    for feature in sorted(set(needs.features) - run.features):
        yield f"needs '{feature}', which the {workload or 'unknown'} trainer does not offer"
