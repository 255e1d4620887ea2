"""Reader of raw kineto traces: standard library only, exact integer nanoseconds."""

from __future__ import annotations

import contextlib
import gc
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from perfproof.claims.metrics_trace import COMM_NAME_REGEX, MEMCPY_KERNEL_REGEX
from perfproof.claims.verifier.document import UnreadableError, read_document

_GPU_CATEGORIES = {
    "kernel": "kernel", "Kernel": "kernel",
    "gpu_memcpy": "memcpy", "Memcpy": "memcpy",
    "gpu_memset": "memset", "Memset": "memset",
}  # fmt: skip
_RUNTIME_CATEGORIES = frozenset({"cuda_runtime", "cuda_driver", "Runtime"})
_CPU_OP_CATEGORIES = frozenset({"cpu_op", "Operator"})
_WANTED = {*_GPU_CATEGORIES, *_RUNTIME_CATEGORIES, *_CPU_OP_CATEGORIES, "user_annotation"}
_STEP = re.compile(r"^ProfilerStep#\d+$")
_LOADER = "enumerate(DataLoader)#"
_COMM = re.compile(COMM_NAME_REGEX, re.IGNORECASE)
_COPY = re.compile(MEMCPY_KERNEL_REGEX)


class GpuEvent(NamedTuple):
    """One event on the device; times in ns, `launch` the start of its launch call.

    An event without a positive duration has `end == start`: it counts, but covers no time.
    """

    start: int
    end: int
    name: str
    role: str
    launch: int | None
    kind: str
    group: str | None
    collective: str | None

    @property
    def is_kernel(self) -> bool:
        """Whether the profiler recorded a kernel."""
        return self.kind == "kernel"


class HostEvent(NamedTuple):
    """One event of a CPU thread; times in ns."""

    start: int
    end: int
    name: str
    thread: str


@dataclass
class RawTrace:
    """What the verifier keeps of one trace file."""

    rank: int | None = None
    world_size: int | None = None
    groups: dict[str, list[int]] = field(default_factory=dict)
    visible_devices: int = 0
    base_time: int = 0
    gpu: list[GpuEvent] = field(default_factory=list)
    steps: list[HostEvent] = field(default_factory=list)
    loader: list[HostEvent] = field(default_factory=list)
    cpu_ops: list[HostEvent] = field(default_factory=list)
    runtime: list[HostEvent] = field(default_factory=list)
    note: str = ""


def read_trace(path: Path) -> RawTrace:
    """Read one trace, gzip or plain. Raises `UnreadableError`."""
    with _collector_paused():
        document, note = read_document(path)
        trace = RawTrace(note=note)
        _header(trace, document)
        _events(trace, [event for event in document["traceEvents"] if isinstance(event, dict)])
    return trace


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Without it the garbage collector walks the growing document again and again: 3 times slower.

    A document of JSON holds no cycles, so nothing is kept that would be freed.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def nanoseconds(value: Any) -> int | None:
    """A time in µs, as JSON number or text, in whole ns; None if it is no finite number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value * 1000
    text = str(value)
    whole, _, fraction = text.partition(".")
    if len(fraction) == 3 and whole.isdigit() and fraction.isdigit():
        return int(whole + fraction)
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return None
    return int((exact * 1000).to_integral_value()) if exact.is_finite() else None


def _header(trace: RawTrace, document: dict[str, Any]) -> None:
    distributed = document.get("distributedInfo")
    if isinstance(distributed, dict):
        trace.rank = _whole(distributed.get("rank"))
        trace.world_size = _whole(distributed.get("world_size"))
        for group in distributed.get("pg_config") or []:
            if isinstance(group, dict):
                _add_group(trace, group.get("pg_name"), group.get("ranks"))
    devices = document.get("deviceProperties")
    trace.base_time = _whole(document.get("baseTimeNanoseconds")) or 0
    trace.visible_devices = len(devices) if isinstance(devices, list) else 0


def _add_group(trace: RawTrace, name: Any, members: Any) -> None:
    if isinstance(members, str):
        try:
            members = json.loads(members)
        except json.JSONDecodeError:
            return
    if isinstance(members, list) and members and all(isinstance(rank, int) for rank in members):
        trace.groups[str(name)] = members


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _events(trace: RawTrace, events: list[dict[str, Any]]) -> None:
    launches: dict[int, int] = {}
    device: list[tuple[dict[str, Any], int, int]] = []
    for event in events:
        category = event.get("cat")
        if not isinstance(category, str) or category not in _WANTED or event.get("ph") != "X":
            continue
        start = nanoseconds(event.get("ts"))
        if start is None:
            continue
        end = start + max(0, nanoseconds(event.get("dur")) or 0)
        if category in _GPU_CATEGORIES:
            device.append((event, start, end))
            continue
        _host_event(trace, category, event, start, end)
        if category in _RUNTIME_CATEGORIES and (correlation := _correlation(event)):
            launches[correlation] = min(start, launches.get(correlation, start))
    _check_one_device(device)
    for event, _, _ in device:
        if "Process Group Ranks" in (arguments := _arguments(event)):
            _add_group(trace, arguments.get("Process Group Name"), arguments["Process Group Ranks"])
    trace.gpu = [_gpu_event(*one, launches) for one in device]


def _check_one_device(device: list[tuple[dict[str, Any], int, int]]) -> None:
    found = {_whole(_arguments(event).get("device")) for event, _, _ in device} - {None}
    if len(found) > 1:
        listed = ", ".join(str(number) for number in sorted(found, key=str))
        raise UnreadableError(f"GPU events of devices {listed}; expected those of one rank")


def _host_event(
    trace: RawTrace, category: str, event: dict[str, Any], start: int, end: int
) -> None:
    name = str(event.get("name", ""))
    host = HostEvent(start, end, name, f"{event.get('pid')}/{event.get('tid')}")
    if category in _RUNTIME_CATEGORIES:
        trace.runtime.append(host)
    elif _STEP.match(name):
        if end > start:
            trace.steps.append(host)
    elif name.startswith(_LOADER):
        trace.loader.append(host)
    elif category in _CPU_OP_CATEGORIES:
        trace.cpu_ops.append(host)


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _correlation(event: dict[str, Any]) -> int | None:
    return _whole(_arguments(event).get("correlation"))


@cache
def _role(name: str, kind: str) -> str:
    if kind == "memcpy" or (kind == "kernel" and _COPY.search(name)):
        return "memcpy"
    return "comm" if kind == "kernel" and _COMM.search(name) else "compute"


def _gpu_event(event: dict[str, Any], start: int, end: int, launches: dict[int, int]) -> GpuEvent:
    name, arguments = str(event.get("name", "")), _arguments(event)
    kind = _GPU_CATEGORIES[str(event["cat"])]
    collective = arguments.get("Collective name")
    role = _role(name, kind)
    if kind == "kernel" and collective and role == "compute":
        role = "comm"
    group = arguments.get("Process Group Name")
    launch = launches.get(_correlation(event) or 0)
    return GpuEvent(
        start, end, name, role, launch, kind,
        None if group is None else str(group),
        None if collective is None else str(collective),
    )  # fmt: skip
