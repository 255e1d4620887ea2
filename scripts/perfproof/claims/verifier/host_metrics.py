"""Metrics of the host's threads, recomputed from the raw events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perfproof.claims.verifier.raw import HostEvent
from perfproof.claims.verifier.scene import CannotSayError, Scene
from perfproof.claims.verifier.stack import training_thread
from perfproof.claims.verifier.sweep import Interval, coverage, length

Params = dict[str, Any]


def dataloader_fraction(scene: Scene, _params: Params) -> float:
    """Window time of the training thread in the data loader."""
    return length(coverage([_training_loader(scene)]), 0b1) / scene.width


def dataloader_idle_fraction(scene: Scene, _params: Params) -> float:
    """The part of it in which the GPU idles."""
    busy = [(event.start, event.end) for event in scene.gpu]
    return length(coverage([_training_loader(scene), busy]), 0b01, 0b10) / scene.width


def _training_loader(scene: Scene) -> list[Interval]:
    if len({event.thread for event in _loading(scene)}) > 1:
        raise CannotSayError("several threads load data, and no step says which one trains")
    return loader_spans(scene)


def loader_spans(scene: Scene) -> list[Interval]:
    """The loader's annotations on the training thread (without steps on any), cut to the window."""
    return [(event.start, event.end) for event in _loading(scene)]


def _loading(scene: Scene) -> list[HostEvent]:
    thread = training_thread(scene.trace)
    events = [e for e in scene.clipped(scene.trace.loader) if thread in (None, e.thread)]
    if not events:
        raise CannotSayError("the window holds no data loader annotation")
    return events


def runtime_call_fraction(scene: Scene, params: Params) -> float:
    """Window time with some thread inside the named call."""
    return length(coverage([call_spans(scene, params)]), 0b1) / scene.width


def call_spans(scene: Scene, params: Params) -> list[Interval]:
    """The calls of the name, cut to the window."""
    calls = [e for e in scene.clipped(scene.trace.runtime) if e.name == params["call"]]
    if not calls:
        raise CannotSayError("the window holds no call of that name")
    return [(e.start, e.end) for e in calls]


def cpu_op_self_fraction(scene: Scene, params: Params) -> float:
    """Window time of the named operator itself, over the training and backward threads."""
    return length(coverage([[scene.window], operator_spans(scene, params)]), 0b11) / scene.width


def operator_spans(scene: Scene, params: Params) -> list[Interval]:
    """Where the operator is the innermost one, in the whole trace."""
    own = scene.own_pieces.get(params["op"])
    if not own:
        raise CannotSayError("the trace holds no such operator on the training or backward threads")
    return own


HOST_METRICS: dict[str, Callable[[Scene, Params], float]] = {
    "dataloader_fraction": dataloader_fraction,
    "dataloader_gpu_idle_fraction": dataloader_idle_fraction,
    "runtime_call_fraction": runtime_call_fraction,
    "cpu_op_self_fraction": cpu_op_self_fraction,
}
