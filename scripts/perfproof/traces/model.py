"""A trace in memory: columns of int64 nanoseconds and interned names, sorted by start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Raw

from perfproof.traces.intervals import Ints
from perfproof.traces.repair import Repairs

KERNEL, MEMCPY, MEMSET = 0, 1, 2

Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Spans:
    """Events of one kind, sorted by start, ties in file order."""

    start: Ints
    end: Ints
    name: Ints  # index into Trace.names
    thread: Ints  # index into Trace.threads

    def __len__(self) -> int:
        return int(self.start.size)


@dataclass(frozen=True)
class GpuEvents(Spans):
    """Kernels, copies and memsets. Impossible durations are stored as 0 and counted."""

    kind: Kinds  # KERNEL, MEMCPY or MEMSET
    stream: Ints  # -1 where not recorded
    device: Ints  # -1 where not recorded
    correlation: Ints  # 0 where not recorded
    external: Ints  # id of the CPU operation, 0 where not recorded
    bytes: Ints  # -1 where not recorded
    collective: dict[int, Collective]  # by event index

    @property
    def duration(self) -> Ints:
        """Nanoseconds, never negative."""
        return self.end - self.start


@dataclass(frozen=True)
class Collective:
    """What PyTorch recorded about a collective's kernel; None where it did not."""

    name: str
    process_group: str | None
    ranks: str | None
    group_size: int | float | None
    dtype: str | None
    in_nelems: int | float | None
    out_nelems: int | float | None
    in_split: str | None
    out_split: str | None


@dataclass(frozen=True)
class Calls(Spans):
    """Calls of the CUDA or HIP runtime and driver."""

    correlation: Ints


@dataclass(frozen=True)
class Ops(Spans):
    """CPU operations; `args` are undecoded and hold shapes."""

    external: Ints
    args: list[Raw]


@dataclass(frozen=True)
class Meta:
    """What the file says about its origin."""

    rank: int | None
    world_size: int | None
    device_names: tuple[str, ...]
    base_time_ns: int | None
    visible_devices: int = 0
    impossible: tuple[str, ...] = ()  # what it says and cannot be, one sentence each


@dataclass
class Faults:
    """Counts of events whose times cannot be right."""

    zero_duration: int = 0
    negative_duration: int = 0
    no_duration: int = 0  # missing, NaN, infinite or absurdly long
    no_timestamp: int = 0  # missing, NaN, infinite or absurdly far: the event is left out
    zero_timestamp: int = 0


@dataclass(frozen=True)
class Trace:
    """Everything analysis needs of one trace file."""

    file: str
    events: int
    names: list[str]
    threads: list[str]
    gpu: GpuEvents
    calls: Calls
    ops: Ops
    marks: Spans  # CPU annotations: ProfilerStep#N, enumerate(DataLoader)#..., user ranges
    processes: tuple[str, ...]  # of the CPU side
    meta: Meta
    gpu_recorded: int  # GPU events in the file, those without a time included
    gpu_faults: Faults = field(default_factory=Faults)
    repairs: Repairs = field(default_factory=Repairs)
    gpu_processes: tuple[str, ...] = ()  # of the GPU side
    arrows: frozenset[int] = frozenset()  # correlations with an `ac2g` arrow, both ends recorded
    extra: dict[str, Any] = field(default_factory=dict)
