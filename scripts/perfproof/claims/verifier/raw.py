"""Reader of raw kineto traces: standard library only, exact integer nanoseconds."""

from __future__ import annotations

import contextlib
import gc
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from perfproof.claims.metrics_trace import COMM_NAME_REGEX, MEMCPY_KERNEL_REGEX
from perfproof.claims.verifier.document import UnreadableError, read_document
from perfproof.claims.verifier.mend import JsonNumber

_GPU_CATEGORIES = {
    "kernel": "kernel", "Kernel": "kernel",
    "gpu_memcpy": "memcpy", "Memcpy": "memcpy",
    "gpu_memset": "memset", "Memset": "memset",
}  # fmt: skip
_RUNTIME_CATEGORIES = frozenset({"cuda_runtime", "cuda_driver", "Runtime"})
_CPU_OP_CATEGORIES = frozenset({"cpu_op", "Operator"})
_WANTED = {*_GPU_CATEGORIES, *_RUNTIME_CATEGORIES, *_CPU_OP_CATEGORIES, "user_annotation"}
_MARK = "ProfilerStep#"
_STEP = re.compile(rf"{_MARK}\d+")
_LOADER = "enumerate(DataLoader)#"
_COMM = re.compile(COMM_NAME_REGEX, re.IGNORECASE)
_COPY = re.compile(MEMCPY_KERNEL_REGEX)
# Larger times are none (2^62 ns are 146 years), nor are identifiers beyond 64 bits.
_TIME_LIMIT, _ID_LIMIT, _LONGEST_NUMBER = 2**62, 2**63, 24


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
    def is_doubtful(self) -> bool:
        """A copy or fill that says it is a collective: two definitions claim it."""
        return self.collective is not None and self.role != "comm"

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
    lost: str = ""
    """What of the file could not be read; empty where all of it was."""


def read_trace(path: Path) -> RawTrace:
    """Read one trace, gzip or plain. Raises `UnreadableError`."""
    with _collector_paused():
        document = read_document(path)
        mends = f"{document.mended} damaged events mended" if document.mended else ""
        trace = RawTrace(note=mends, lost="; ".join(document.lost))
        _header(trace, document.header)
        _events(trace, document.events)
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
    """A time in µs, as JSON number or text, in whole ns; None if it is none below 2^62 ns."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return _in_range(value * 1000)
    text = str(value)
    whole, _, fraction = text.partition(".")
    plain = len(fraction) == 3 and len(text) < _LONGEST_NUMBER and text.isascii()
    if plain and whole.isdigit() and fraction.isdigit():
        return _in_range(int(whole + fraction))
    return _decimal(text)


def _in_range(time: int) -> int | None:
    return time if abs(time) < _TIME_LIMIT else None


def _decimal(text: str) -> int | None:
    try:
        exact = Decimal(text) if text.isascii() else Decimal("NaN")
        # An exponent can stand for more digits than memory holds.
        if not exact.is_finite() or exact.adjusted() > _LONGEST_NUMBER:
            return None
        return _in_range(int((exact * 1000).to_integral_value()))
    except ArithmeticError:
        return None


def _header(trace: RawTrace, header: dict[str, Any]) -> None:
    distributed = header.get("distributedInfo")
    if isinstance(distributed, dict):
        trace.rank = _whole(distributed.get("rank"))
        trace.world_size = _whole(distributed.get("world_size"))
        groups = distributed.get("pg_config")
        for group in groups if isinstance(groups, list) else []:
            if isinstance(group, dict):
                _add_group(trace, group.get("pg_name"), group.get("ranks"))
    devices = header.get("deviceProperties")
    trace.base_time = _whole(header.get("baseTimeNanoseconds")) or 0
    trace.visible_devices = len(devices) if isinstance(devices, list) else 0


def _add_group(trace: RawTrace, name: Any, members: Any) -> None:
    if isinstance(members, str):
        try:
            members = json.loads(members)
        except (ValueError, RecursionError):
            return
    if isinstance(members, list) and members and all(isinstance(rank, int) for rank in members):
        trace.groups[str(name)] = members


def _whole(value: Any) -> int | None:
    """A rank, a size, an index: a whole number from 0."""
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit() and len(value) < _LONGEST_NUMBER):
            return None
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _ID_LIMIT else None


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
    name = _name(event)
    host = HostEvent(start, end, name, f"{event.get('pid')}/{event.get('tid')}")
    if category in _RUNTIME_CATEGORIES:
        trace.runtime.append(host)
    elif name.startswith(_MARK):
        if end > start and _STEP.fullmatch(name):
            trace.steps.append(host)
    elif name.startswith(_LOADER):
        trace.loader.append(host)
    elif category in _CPU_OP_CATEGORIES:
        trace.cpu_ops.append(host)


def _name(event: dict[str, Any]) -> str:
    name = event.get("name")
    return "" if name is None else str(name)


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _correlation(event: dict[str, Any]) -> int:
    """The number that ties a GPU event to its call, also where it stands as 5.0; 0 for none."""
    value = _arguments(event).get("correlation")
    if isinstance(value, JsonNumber):
        exact = Decimal(value)
        value = int(exact) if exact.adjusted() < _LONGEST_NUMBER else None
    return _whole(value) or 0


@cache
def _role(name: str, kind: str) -> str:
    if kind == "memcpy" or (kind == "kernel" and _COPY.search(name)):
        return "memcpy"
    return "comm" if kind == "kernel" and _COMM.search(name) else "compute"


def _gpu_event(event: dict[str, Any], start: int, end: int, launches: dict[int, int]) -> GpuEvent:
    name, arguments = _name(event), _arguments(event)
    kind = _GPU_CATEGORIES[str(event["cat"])]
    collective = arguments.get("Collective name")
    if not isinstance(collective, str) or isinstance(collective, JsonNumber):
        collective = None
    role = _role(name, kind)
    if kind == "kernel" and collective is not None and role == "compute":
        role = "comm"
    group = arguments.get("Process Group Name")
    launch = launches.get(_correlation(event))
    return GpuEvent(
        start, end, name, role, launch, kind, None if group is None else str(group), collective
    )
