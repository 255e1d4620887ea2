"""The time of a claim: the part of the window that bounds its share of the step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from perfproof.claims.verifier.gpu_metrics import late_gaps, of_direction, of_group, of_name
from perfproof.claims.verifier.host_metrics import call_spans, loader_spans, operator_spans
from perfproof.claims.verifier.ranks import not_waiting, waiting
from perfproof.claims.verifier.raw import GpuEvent
from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError, Scene
from perfproof.claims.verifier.sweep import Interval, coverage, length, without

Params = dict[str, Any]


@dataclass
class ClaimTimes:
    """Times of claims about one run, each found once."""

    files: RunFiles
    _known: dict[str, list[Interval] | None] = field(default_factory=dict)

    def of(self, rank: int, metric: str, params: Params) -> list[Interval] | None:
        """As `claim_time`."""
        key = json.dumps([rank, metric, params], sort_keys=True)
        if key not in self._known:
            self._known[key] = claim_time(self.files, rank, metric, params)
        return self._known[key]


def claim_time(files: RunFiles, rank: int, metric: str, params: Params) -> list[Interval] | None:
    """Disjoint intervals of the rank's window; None for a metric without a share.

    Raises `CannotSayError` where the rank has nothing of the kind.
    """
    scene = files.scene(rank)
    if metric == "collective_wait_fraction":
        there = waiting(files.scenes()).get(rank)
        if there is None:
            raise CannotSayError("no collective that the rank shares with another recorded one")
        return without(there.waits, not_waiting(scene, there), scene.window)
    if metric in _ALONE:
        chosen = _ALONE[metric](scene, params)
        known = {id(event) for event in chosen}
        others = [event for event in scene.gpu if id(event) not in known]
        return without(_spans(chosen), _spans(others), scene.window)
    if metric in _HOST:
        taken = _spans(scene.gpu) + (_loader(scene) if scene.gpu else [])
        return without(_HOST[metric](scene, params), taken, scene.window)
    if metric in _LOADER:
        return without(loader_spans(scene), _spans(scene.gpu), scene.window)
    return None


def held(inner: list[Interval], outer: list[Interval]) -> float:
    """How much of `inner` lies in `outer`, both disjoint; 0 where `inner` is empty."""
    whole = total(inner)
    return length(coverage([inner, outer]), 0b11) / whole if whole else 0.0


def total(time: list[Interval]) -> int:
    """Length of disjoint intervals, ns."""
    return sum(end - start for start, end in time)


def _spans(events: list[GpuEvent]) -> list[Interval]:
    return [(event.start, event.end) for event in events]


def _loader(scene: Scene) -> list[Interval]:
    try:
        return loader_spans(scene)
    except CannotSayError:
        return []


def _communication(scene: Scene, _params: Params) -> list[GpuEvent]:
    return [event for event in scene.gpu if event.role == "comm"]


_ALONE: dict[str, Callable[[Scene, Params], list[GpuEvent]]] = {
    "exposed_comm_fraction": _communication,
    "kernel_group_fraction": of_group,
    "top_kernel_fraction": of_name,
    "exposed_memcpy_fraction": of_direction,
}
_HOST: dict[str, Callable[[Scene, Params], list[Interval]]] = {
    "gpu_idle_fraction": lambda scene, _params: [scene.window],
    "host_late_idle_fraction": lambda scene, _params: late_gaps(scene),
    "runtime_call_fraction": call_spans,
    "cpu_op_self_fraction": operator_spans,
}
_LOADER = frozenset({"dataloader_fraction", "dataloader_gpu_idle_fraction"})
