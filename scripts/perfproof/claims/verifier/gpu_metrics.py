"""Metrics of the device, recomputed from the raw events."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from perfproof.claims.metrics_trace import SHORT_KERNEL_US
from perfproof.claims.verifier.groups import group_of
from perfproof.claims.verifier.raw import GpuEvent
from perfproof.claims.verifier.regex import selected
from perfproof.claims.verifier.scene import CannotSayError, Scene
from perfproof.claims.verifier.sweep import Interval, coverage, gaps, length

Params = dict[str, Any]
_DIRECTION = re.compile(
    r"(?P<HtoD>HtoD|Host_?To_?Device)|(?P<DtoH>DtoH|Device_?To_?Host)"
    r"|(?P<DtoD>DtoD|Device_?To_?Device)|(?P<PtoP>PtoP|PeerToPeer)",
    re.IGNORECASE,
)


def idle_fraction(scene: Scene, _params: Params) -> float:
    """Window time without a GPU event."""
    _need_gpu(scene)
    return scene.idle / scene.width


def host_late_fraction(scene: Scene, _params: Params) -> float:
    """Gaps whose next event was launched only after the gap had begun."""
    return sum(end - start for start, end in late_gaps(scene)) / scene.width


def late_gaps(scene: Scene) -> list[Interval]:
    """The gaps themselves."""
    nexts: dict[int, GpuEvent] = {}
    for event in sorted(_need_gpu(scene), key=_precedence):
        if event.end > event.start:
            nexts.setdefault(event.start, event)
    late = []
    for start, end in gaps([(e.start, e.end) for e in scene.gpu], scene.window):
        follower = nexts.get(end)
        if follower and follower.launch is not None and follower.launch >= start:
            late.append((start, end))
    return late


def _precedence(event: GpuEvent) -> int:
    """Of events that start together, kernels come before copies before fills, then file order."""
    return ("kernel", "memcpy", "memset").index(event.kind)


def short_kernel_fraction(scene: Scene, _params: Params) -> float:
    """Kernels shorter than the threshold over all kernels, by count."""
    kernels = [e for e in _need_gpu(scene) if e.is_kernel]
    if not kernels:
        raise CannotSayError("the window holds no kernel")
    limit = round(SHORT_KERNEL_US * 1000)
    return sum(event.end - event.start < limit for event in kernels) / len(kernels)


def launch_to_start_us(scene: Scene, params: Params) -> float:
    """Quantile of start minus launch, µs."""
    delays = sorted(e.start - e.launch for e in _need_gpu(scene) if e.launch is not None)
    quantile = float(params["quantile"])
    if not delays or not 0 <= quantile <= 1:
        raise CannotSayError("no linked GPU event, or a quantile outside [0, 1]")
    at = quantile * (len(delays) - 1)
    low = int(at)
    high = min(low + 1, len(delays) - 1)
    return (delays[low] + (delays[high] - delays[low]) * (at - low)) / 1000


def exposed_comm_fraction(scene: Scene, _params: Params) -> float:
    """Communication that no compute hides."""
    _need_gpu(scene)
    lengths = coverage([[scene.window], scene.role("comm"), scene.role("compute")])
    return length(lengths, 0b011, 0b100) / scene.width


def kernel_group_fraction(scene: Scene, params: Params) -> float:
    """Window time in which a kernel selected by the claim's regexes runs."""
    return _share(scene, of_group(scene, params))


def of_group(scene: Scene, params: Params) -> list[GpuEvent]:
    """The kernels that the regexes select."""
    names = {e.name for e in _need_gpu(scene) if _is_compute_kernel(e)}
    chosen = selected(names, params["name_regex"], params["not_regex"])
    return [e for e in scene.gpu if _is_compute_kernel(e) and e.name in chosen]


def top_kernel_fraction(scene: Scene, params: Params) -> float:
    """Window time in which the named kernel runs."""
    return _share(scene, of_name(scene, params))


def of_name(scene: Scene, params: Params) -> list[GpuEvent]:
    """The kernels of the name."""
    chosen = [e for e in _need_gpu(scene) if e.is_kernel and e.name == params["kernel"]]
    if not chosen:
        raise CannotSayError("the window holds no kernel of that name")
    # A name may run as a collective too, where its events say so: those are of another group.
    return [e for e in chosen if group_of(e) == params["group"]] or chosen


def exposed_memcpy_fraction(scene: Scene, params: Params) -> float:
    """Copies of one direction that neither compute nor communication hides."""
    copies = [(e.start, e.end) for e in of_direction(scene, params)]
    lengths = coverage([[scene.window], copies, scene.role("compute", "comm")])
    return length(lengths, 0b011, 0b100) / scene.width


def of_direction(scene: Scene, params: Params) -> list[GpuEvent]:
    """The copies of the direction."""
    direction = params["direction"]
    copies = [e for e in _need_gpu(scene) if e.role == "memcpy"]
    return [e for e in copies if copy_direction(e.name) == direction]


def copy_direction(name: str) -> str:
    """`HtoD`, `DtoH`, `DtoD`, `PtoP` or `other`, from a copy's name."""
    found = _DIRECTION.search(name)
    return (found.lastgroup if found else None) or "other"


def _is_compute_kernel(event: GpuEvent) -> bool:
    return event.is_kernel and event.role == "compute"


def _share(scene: Scene, events: list[GpuEvent]) -> float:
    spans: list[Interval] = [(e.start, e.end) for e in events]
    return length(coverage([[scene.window], spans]), 0b11) / scene.width


def _need_gpu(scene: Scene) -> list[GpuEvent]:
    if not scene.gpu:
        raise CannotSayError("the trace holds no GPU event")
    return scene.gpu


GPU_METRICS: dict[str, Callable[[Scene, Params], float]] = {
    "gpu_idle_fraction": idle_fraction,
    "host_late_idle_fraction": host_late_fraction,
    "short_kernel_count_fraction": short_kernel_fraction,
    "launch_to_start_us": launch_to_start_us,
    "exposed_comm_fraction": exposed_comm_fraction,
    "kernel_group_fraction": kernel_group_fraction,
    "top_kernel_fraction": top_kernel_fraction,
    "exposed_memcpy_fraction": exposed_memcpy_fraction,
}
