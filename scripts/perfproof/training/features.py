"""Which switches a trainer offers: what a lever may require. Pure, without PyTorch."""

from __future__ import annotations

from perfproof.core.errors import InputError
from perfproof.schema.config import Cluster, Workload
from perfproof.schema.levers import Lever
from perfproof.training.embedded.models import MODELS
from perfproof.training.upstream.setup import TRAINERS


def offered(model: str, workload: Workload, site: Cluster) -> frozenset[str]:
    """Features of the trainer that runs `model` at `site`; none where nobody knows the trainer."""
    if workload is Workload.EMBEDDED:
        return MODELS[model].features if model in MODELS else frozenset()
    upstream = site.upstream.get(model)
    if upstream is None:
        return frozenset()
    trainer = TRAINERS.get(upstream.trainer or model)
    own = frozenset(upstream.features)
    if trainer is None:
        return own
    kept = {"persistent_workers"} if trainer.keeps_loaders else set()
    return own | trainer.features | trainer.precisions.keys() | kept


def refuse_missing(lever: Lever, model: str, workload: Workload, site: Cluster, where: str) -> None:
    """Refuse a lever whose switch nothing reads here: it would be measured as a change."""
    needs = lever.requires
    if needs.workload and workload not in needs.workload:
        wanted = " or ".join(kind.value for kind in needs.workload)
        raise InputError(where, f"the {workload.value} workload", f"{wanted}, which it needs")
    missing = sorted(set(needs.features) - offered(model, workload, site))
    if missing:
        found = f"the {workload.value} trainer of {model} has no switch '{missing[0]}'"
        raise InputError(
            where, found, "a trainer that reads it (`features` of the cluster's entry)"
        )
