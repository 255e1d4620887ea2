"""Step records: what neither trainer prints of a step, in a form that the log reader knows."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass
class StepClock:
    """Times of consecutive steps: each runs from its start to the start of the next."""

    start_s: float
    start_unix_s: float

    @classmethod
    def now(cls) -> StepClock:
        """A clock whose first step starts now."""
        return cls(time.perf_counter(), time.time())

    def elapsed_s(self) -> float:
        """Since the current step's start."""
        return time.perf_counter() - self.start_s

    def next_step(self) -> tuple[float, float]:
        """End the current step here: its start (unix) and its duration."""
        now, unix = time.perf_counter(), time.time()
        ended = self.start_unix_s, now - self.start_s
        self.start_s, self.start_unix_s = now, unix
        return ended


@dataclass(frozen=True)
class StepRecord:
    """One training step of rank 0."""

    epoch: int
    index: int
    start_unix_s: float
    duration_s: float
    samples: int
    dataload_s: float
    loss: float
    profiled: bool

    def line(self) -> str:
        """`[perfproof] step epoch=… i=… t=… dt=… samples=… dataload=… loss=… profiled=… rank=0`."""
        return (
            f"[perfproof] step epoch={self.epoch} i={self.index} t={self.start_unix_s:.6f} "
            f"dt={self.duration_s:.6f} samples={self.samples} dataload={self.dataload_s:.6f} "
            f"loss={self.loss:.6f} profiled={int(self.profiled)} rank=0"
        )
