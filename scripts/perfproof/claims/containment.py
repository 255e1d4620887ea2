"""Which claims are about time that a claim ranked above is about too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from perfproof.claims.candidates import Candidate
from perfproof.claims.selection import Choice
from perfproof.claims.tables import RankTables

LEAST_SHARED = 0.9

Key = tuple[str, str]


@dataclass(frozen=True)
class Shared:
    """What the activities of one rank's host have in common.

    `host`: by two of them, how much of the first one's GPU-idle time the other fills too.
    """

    has_gpu: bool = False
    host: dict[tuple[Key, Key], float] = field(default_factory=dict)


# By definition, on every rank with a GPU: the time of the first lies in that of the second.
_ALWAYS = frozenset(
    {
        ("host_late_idle_fraction", "gpu_idle_fraction"),
        ("runtime_call_fraction", "gpu_idle_fraction"),
        ("cpu_op_self_fraction", "gpu_idle_fraction"),
        ("collective_wait_fraction", "exposed_comm_fraction"),
    }
)
_HOST_KIND = {
    "cpu_op_self_fraction": ("cpu_op", "op"),
    "runtime_call_fraction": ("call", "call"),
    "host_late_idle_fraction": ("host_late", ""),
    "dataloader_fraction": ("dataloader", ""),
}


def read_shared(tables: RankTables) -> Shared:
    """The table `host_overlap` of one rank. Raises InputError where it is missing or damaged."""
    name = "host_overlap"
    host = {
        ((row["kind"], row["name"]), (row["other_kind"], row["other_name"])): tables.number(
            name, row, "shared_fraction"
        )
        for row in tables.rows(name)
    }
    return Shared(tables.rank.gpu_events > 0, host)


def containers(choices: Sequence[Choice], shared: dict[int, Shared]) -> list[list[int]]:
    """For each choice the places of those before it whose time holds its time, all on its rank."""
    return [
        [
            place
            for place, outer in enumerate(choices[:number])
            if _holds(outer.candidate, inner.candidate, shared.get(inner.candidate.rank, Shared()))
        ]
        for number, inner in enumerate(choices)
    ]


def _holds(outer: Candidate, inner: Candidate, shared: Shared) -> bool:
    if not inner.share or not outer.share:
        return False
    metrics = (inner.metric, outer.metric)
    if metrics == ("top_kernel_fraction", "kernel_group_fraction"):
        return bool(inner.params["group"] == outer.params["group"])
    if metrics in _ALWAYS:
        return shared.has_gpu
    return shared.host.get((_host_key(inner), _host_key(outer)), 0.0) >= LEAST_SHARED


def _host_key(one: Candidate) -> Key:
    """As in the table; metrics of the device have no row there."""
    kind, param = _HOST_KIND.get(one.metric, (one.metric, ""))
    return kind, str(one.params.get(param, ""))
