"""Hand-made kineto traces, written with known truth in mind. Times in µs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from perfproof.artifacts.inventory import take_inventory
from perfproof.schema.run import Inventory

MAIN, BACKWARD = 1, 2


class Kineto:
    """Collects events; `write` makes the file."""

    def __init__(self, rank: int = 0, world: int = 1, devices: int = 8) -> None:
        self.header: dict[str, Any] = {
            "distributedInfo": {"rank": rank, "world_size": world},
            "deviceProperties": [{"id": n, "name": "GPU"} for n in range(devices)],
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        }
        self.events: list[dict[str, Any]] = []
        self.next_correlation = 1

    def event(
        self, cat: str, name: str, start: float, end: float, tid: Any = MAIN, **args: Any
    ) -> Kineto:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start,
             "dur": round(end - start, 3), "args": args}
        )  # fmt: skip
        return self

    def step(self, number: int, start: float, end: float) -> Kineto:
        return self.event("user_annotation", f"ProfilerStep#{number}", start, end)

    def gpu(
        self,
        name: str,
        start: float,
        end: float,
        launch: float | None = None,
        cat: str = "kernel",
        **args: Any,
    ) -> Kineto:
        """A GPU event; with `launch` its call starts there and takes 1 µs."""
        correlation = self.next_correlation
        self.next_correlation += 1
        if launch is not None:
            call = "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel"
            self.event("cuda_runtime", call, launch, launch + 1, correlation=correlation)
        return self.event(cat, name, start, end, tid=7, correlation=correlation, **args)

    def collective(self, start: float, end: float, launch: float, group: list[int]) -> Kineto:
        return self.gpu(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, end, launch,
            **{"Collective name": "allreduce", "Process Group Name": "0",
               "Process Group Ranks": json.dumps(group)},
        )  # fmt: skip

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**self.header, "traceEvents": self.events})
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        return path


def inventory_of(root: Path) -> Inventory:
    """The inventory of what `root` holds."""
    return take_inventory(root, "artifacts/hand-made")


def claim(metric: str, value: float, cls: str, **changes: Any) -> dict[str, Any]:
    """A claim as a person would write it in JSON."""
    return {
        "id": "TR-001", "class": cls, "source": "trace", "statement": "by hand",
        "metric": metric, "params": {}, "value": value, "unit": "fraction",
        "share_of_step": None, "ranks": [0], "evidence": [], "remedy": None,
        "author": "a person",
        "reasons": {"share_of_step": "not_applicable", "remedy": "not_applicable"},
        **changes,
    }  # fmt: skip


def write_claims(path: Path, claims: list[Any], source: str = "trace") -> Path:
    """A claims file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"schema_version": 1, "run_id": "artifacts/hand-made", "source": source,
              "claims": claims, "problems": []}  # fmt: skip
    path.write_text(json.dumps(record), encoding="utf-8")
    return path
