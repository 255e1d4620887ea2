"""Metrics over several ranks, and the question whether communication leaves the node."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfproof.claims.verifier.raw import GpuEvent
from perfproof.claims.verifier.scene import CannotSayError, Scene
from perfproof.claims.verifier.sweep import Interval


@dataclass
class Waiting:
    """One rank's collectives that could be matched: where it waits, and where it does not."""

    waits: list[Interval] = field(default_factory=list)
    transfers: list[Interval] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)

    @property
    def total(self) -> int:
        """Sum of the waits in ns."""
        return sum(end - start for start, end in self.waits)


def waiting(scenes: dict[int, Scene]) -> dict[int, Waiting]:
    """Where each rank waits in collectives for others.

    All ranks leave a collective together, so the fastest rank came last: a rank waits in the first
    part of its own, which is as long as it takes longer than the fastest. Collectives match by
    process group and order. A group counts only where all its ranks recorded the same steps and
    the same sequence of collectives. Raises `CannotSayError` if none does.
    """
    by_group: dict[str, dict[int, list[GpuEvent]]] = defaultdict(dict)
    for rank, scene in scenes.items():
        for event in sorted(scene.gpu, key=lambda event: event.start):
            if event.role == "comm":
                by_group[event.group or "all"].setdefault(rank, []).append(event)
    found: dict[int, Waiting] = defaultdict(Waiting)
    unmatched = []
    for name, ranks in sorted(by_group.items()):
        if len(ranks) > 1 and _same_everywhere(ranks, scenes):
            _add_waits(found, name, ranks)
        elif len(ranks) > 1:
            unmatched.append(name)
    if not found:
        raise CannotSayError(
            f"the ranks' collectives do not match in process groups {', '.join(unmatched)}"
            if unmatched
            else "no collective that recorded ranks share"
        )
    return dict(found)


def not_waiting(scene: Scene, waiting_there: Waiting) -> list[Interval]:
    """GPU work of the rank that is no wait in a matched collective."""
    work = [
        (event.start, event.end)
        for event in scene.gpu
        if event.role != "comm" or (event.group or "all") not in waiting_there.groups
    ]
    return work + waiting_there.transfers


def _same_everywhere(ranks: dict[int, list[GpuEvent]], scenes: dict[int, Scene]) -> bool:
    sequences = {tuple(e.collective or e.name.split("(")[0] for e in es) for es in ranks.values()}
    steps = {tuple(step.name for step in scenes[rank].trace.steps) for rank in ranks}
    return len(sequences) == 1 and len(steps) == 1


def _add_waits(found: dict[int, Waiting], name: str, ranks: dict[int, list[GpuEvent]]) -> None:
    for rank in ranks:
        found[rank].groups.add(name)
    for together in zip(*ranks.values(), strict=True):
        fastest = min(event.end - event.start for event in together)
        for rank, event in zip(ranks, together, strict=True):
            found[rank].waits.append((event.start, event.end - fastest))
            found[rank].transfers.append((event.end - fastest, event.end))


def topology(scenes: dict[int, Scene], manifest: Path | None) -> str:
    """`intra_node` or `inter_node`; raises `CannotSayError` where no record tells.

    Of the groups that communicate in the window, all must fit one node to be intra-node. The
    manifest's layout says how many ranks a node has; without one, the GPUs that a rank sees do.
    """
    traces = [scene.trace for scene in scenes.values()]
    world = max((trace.world_size or 0 for trace in traces), default=0)
    visible = max((trace.visible_devices for trace in traces), default=0)
    per_node = _ranks_per_node(manifest) or (visible if 0 < world <= visible or visible > 1 else 0)
    if not per_node:
        raise CannotSayError("neither manifest nor trace says how many ranks a node has")
    groups = [group for scene in scenes.values() for group in _communicating(scene)]
    if not groups and not world:
        raise CannotSayError("the traces name neither process groups nor a world size")
    ends = [(min(group), max(group)) for group in groups] or [(0, world - 1)]
    apart = any(first // per_node != last // per_node for first, last in ends)
    return "inter_node" if apart else "intra_node"


def _communicating(scene: Scene) -> list[list[int]]:
    """Members of the groups whose communication runs in the window, where the trace lists them."""
    names = {event.group for event in scene.gpu if event.role == "comm"}
    known = scene.trace.groups
    return [known[name] for name in sorted(filter(None, names)) if name in known]


def _ranks_per_node(manifest: Path | None) -> int | None:
    if manifest is None:
        return None
    try:
        resolved: Any = json.loads(manifest.read_text(encoding="utf-8"))["resolved"]
        return -(-int(resolved["ranks"]) // int(resolved["nodes"]))
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None
