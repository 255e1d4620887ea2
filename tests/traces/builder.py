"""Small kineto traces made by hand, with known truth; a larger generated one for benchmarks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PID = 100
Number = float | int


class TraceBuilder:
    """Collects events; times in µs. `device` is where GPU events run."""

    def __init__(self, device: int = 0, pid: int = PID, **meta: Any) -> None:
        self.device, self.pid, self.meta = device, pid, meta
        self.events: list[dict[str, Any]] = []
        self._correlation = 0

    def event(self, cat: str, name: str, start: Number, dur: Number, **more: Any) -> dict[str, Any]:
        """Any complete event."""
        event = {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": dur}
        event |= {"pid": self.pid, "tid": self.pid, "args": {}, **more}
        self.events.append(event)
        return event

    def step(self, number: int, start: Number, dur: Number, **more: Any) -> dict[str, Any]:
        """A ProfilerStep annotation of the CPU."""
        return self.mark(f"ProfilerStep#{number}", start, dur, **more)

    def mark(self, name: str, start: Number, dur: Number, **more: Any) -> dict[str, Any]:
        """A user annotation of the CPU."""
        return self.event("user_annotation", name, start, dur, **more)

    def op(self, name: str, start: Number, dur: Number, **more: Any) -> dict[str, Any]:
        """A CPU operation."""
        return self.event("cpu_op", name, start, dur, **more)

    def call(self, name: str, start: Number, dur: Number, **more: Any) -> int:
        """A runtime call; returns its correlation."""
        self._correlation += 1
        args = {"correlation": self._correlation}
        self.event("cuda_runtime", name, start, dur, args=args, **more)
        return self._correlation

    def gpu(self, name: str, start: Number, dur: Number, cat: str = "kernel", **args: Any) -> None:
        """A GPU event without a launch, unless `correlation` names one."""
        args = {"device": self.device, "stream": 7, **args}
        self.event(cat, name, start, dur, pid=self.device, tid=args["stream"], args=args)

    def kernel(
        self,
        name: str,
        start: Number,
        dur: Number,
        launched: Number | None = None,
        call: str = "cudaLaunchKernel",
        call_dur: Number = 2,
        **args: Any,
    ) -> None:
        """A GPU event with its launch, 5 µs before it unless `launched` says when."""
        at = start - 5 if launched is None else launched
        self.gpu(name, start, dur, correlation=self.call(call, at, call_dur), **args)

    def document(self) -> dict[str, Any]:
        """The whole file as JSON data."""
        return {"schemaVersion": 1, **self.meta, "traceEvents": self.events}

    def text(self) -> str:
        """The whole file as JSON text."""
        return json.dumps(self.document())

    def write(self, path: Path) -> Path:
        """Write the file, gzip when the name says so."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.text().encode()
        path.write_bytes(gzip.compress(data, 1, mtime=0) if path.suffix == ".gz" else data)
        return path


def ranked(rank: int, world: int, **more: Any) -> TraceBuilder:
    """A builder for one rank of a distributed run."""
    return TraceBuilder(
        device=rank, pid=PID + rank, distributedInfo={"rank": rank, "world_size": world}, **more
    )


def ten_kernels(**meta: Any) -> TraceBuilder:
    """Ten kernels of 20 µs every 30 µs: busy 200 of 290 µs."""
    trace = TraceBuilder(**meta)
    for index in range(10):
        trace.kernel("gemm_kernel", 1000 + 30 * index, 20)
    return trace


def training(steps: int = 3, layers: int = 20, meta: dict[str, Any] | None = None) -> TraceBuilder:
    """A generated training trace: nested operations, launches, copies, collectives, host noise.

    Deterministic; about 24 events a layer and step.
    """
    trace = TraceBuilder(baseTimeNanoseconds=1_700_000_000_000_000_000, **(meta or {}))
    clock, device = 5_000_000.125, 5_000_050.5
    for step in range(steps):
        begin = clock
        trace.mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", clock, 30.25)
        clock += 40
        for layer in range(layers):
            for kernel in ("nvjet_tst_128x128", "void at::native::elementwise_kernel<add>"):
                trace.op("aten::linear", clock, 28.5)
                trace.op("aten::addmm", clock + 2, 24.25)
                device = max(device, clock + 14.75)
                trace.kernel(kernel, device, 9.375 + layer % 7, launched=clock + 8)
                device += 10 + layer % 7
                for frame in range(7):
                    trace.event("python_function", f"model.py({frame}): forward", clock, 30)
                clock += 31.5
            collective = {"Collective name": "allreduce", "Process Group Name": "0", "stream": 9}
            trace.kernel("ncclDevKernel_AllReduce", clock + 6, 12.5, clock, **collective)
        trace.step(step, begin, clock - begin)
    return trace
