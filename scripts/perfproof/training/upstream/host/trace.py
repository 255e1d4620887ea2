"""One profiler trace a rank, as `traces/rank<N>.pt.trace.json.gz` of the run directory."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
from pathlib import Path
from typing import Any

from .plan import HostError, Window


def trace_path(run_dir: Path, rank: int) -> Path:
    """Where the trace of `rank` belongs."""
    return run_dir / "traces" / f"rank{rank}.pt.trace.json.gz"


class Profiler:
    """Records a window of the profiled epoch, for trainers without a profiler of their own."""

    def __init__(self, window: Window, path: Path) -> None:
        self._window, self._path = window, path
        self._profile: Any = None
        self._left = 0

    def begins(self, profiled: bool) -> None:
        """Start the profiler if this is its epoch."""
        if profiled:
            self._left = self._window.steps
            self._profile = self._make()
            self._profile.start()

    def step(self) -> None:
        """Move the window on; the trace is written when it is full."""
        if self._left > 0:
            self._left -= 1
            self._profile.step()

    def ends(self) -> None:
        """Stop; an epoch shorter than the window is an error."""
        if self._profile is None:
            return
        if self._left > 0:
            raise HostError(
                f"the profiled epoch ended {self._left} step(s) before the profiler's window of "
                f"{self._window.steps} steps was full"
            )
        self._profile.stop()
        self._profile = None

    def _make(self) -> Any:
        import torch

        window = self._window
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        return torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(
                wait=window.wait, warmup=window.warmup, active=window.active, repeat=1
            ),
            on_trace_ready=self._export,
            record_shapes=window.record_shapes,
            with_stack=window.with_stack,
        )

    def _export(self, profile: Any) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        profile.export_chrome_trace(str(self._path))


def collect(logs: Path, path: Path, steps: int) -> None:
    """Move the trace that this process's trainer wrote somewhere under `logs` to `path`.

    `steps` is the length of the profiled epoch, for the message.
    """
    found = sorted(logs.rglob(f"{socket.gethostname()}_{os.getpid()}.*.pt.trace.json"))
    if len(found) != 1:
        raise HostError(
            f"the trainer's profiler left {len(found)} traces of this rank, expected 1 "
            f"(the profiled epoch had {steps} steps)"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with found[0].open("rb") as source, gzip.open(path, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    found[0].unlink()
