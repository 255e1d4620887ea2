"""Metrics of the host's threads, recomputed from the raw events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perfproof.claims.verifier.scene import CannotSayError, Scene
from perfproof.claims.verifier.stack import training_thread
from perfproof.claims.verifier.sweep import Interval, coverage, length

Params = dict[str, Any]


def loader_idle(scene: Scene) -> float:
    """Window time in the data loader while the GPU idles; 0 without loader annotations."""
    try:
        return dataloader_idle_fraction(scene, {})
    except CannotSayError:
        return 0.0


def dataloader_fraction(scene: Scene, _params: Params) -> float:
    """Window time of the training thread in the data loader."""
    return length(coverage([_loader_spans(scene)]), 0b1) / scene.width


def dataloader_idle_fraction(scene: Scene, _params: Params) -> float:
    """The part of it in which the GPU idles."""
    busy = [(event.start, event.end) for event in scene.gpu]
    return length(coverage([_loader_spans(scene), busy]), 0b01, 0b10) / scene.width


def _loader_spans(scene: Scene) -> list[Interval]:
    thread = training_thread(scene.trace)
    events = [e for e in scene.clipped(scene.trace.loader) if thread in (None, e.thread)]
    if not events:
        raise CannotSayError("the window holds no data loader annotation")
    return [(event.start, event.end) for event in events]


def runtime_call_fraction(scene: Scene, params: Params) -> float:
    """Window time with some thread inside the named call."""
    calls = [e for e in scene.clipped(scene.trace.runtime) if e.name == params["call"]]
    if not calls:
        raise CannotSayError("the window holds no call of that name")
    return length(coverage([[(e.start, e.end) for e in calls]]), 0b1) / scene.width


def cpu_op_self_fraction(scene: Scene, params: Params) -> float:
    """Window time of the named operator itself, over the training and backward threads."""
    own = scene.own_pieces.get(params["op"])
    if not own:
        raise CannotSayError("the trace holds no such operator on the training or backward threads")
    return length(coverage([[scene.window], own]), 0b11) / scene.width


HOST_METRICS: dict[str, Callable[[Scene, Params], float]] = {
    "dataloader_fraction": dataloader_fraction,
    "dataloader_gpu_idle_fraction": dataloader_idle_fraction,
    "runtime_call_fraction": runtime_call_fraction,
    "cpu_op_self_fraction": cpu_op_self_fraction,
}
