"""Step records: when each step ended, how many samples it took, what it lost.

A step lasts from one request to the loader to the next, so it holds its own wait for data. On a GPU
the marks are events on the stream: they cost no synchronisation, and are read once an epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol


class Step(NamedTuple):
    """One finished step; `mark` is its end, `loss` a number or a scalar tensor or None."""

    number: int
    samples: int
    mark: Any
    loss: Any


class Observer(Protocol):
    """What is told about the course of training."""

    def begins(self, profiled: bool) -> None:
        """An epoch begins."""

    def step(self) -> None:
        """A step has ended."""

    def ends(self) -> None:
        """The epoch has ended."""


class HostClock:
    """Marks on the host's clock."""

    def mark(self) -> Any:
        """Now."""
        return time.perf_counter()

    def settle(self) -> None:
        """Nothing is outstanding on the host."""

    def seconds(self, start: Any, end: Any) -> float:
        """Time between two marks."""
        return float(end - start)


class DeviceClock:
    """Marks on the current stream of the GPU."""

    def __init__(self) -> None:
        import torch

        self._cuda: Any = torch.cuda

    def mark(self) -> Any:
        """An event that the stream passes in turn."""
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def settle(self) -> None:
        """Wait until the stream has passed every mark."""
        self._cuda.synchronize()

    def seconds(self, start: Any, end: Any) -> float:
        """Time between two marks."""
        return float(start.elapsed_time(end)) / 1e3


class Recorder:
    """Collects the steps of an epoch and writes their records when it ends."""

    def __init__(self, rank: int, clock: Callable[[], Any], write: Callable[[str], None]) -> None:
        self.epochs = 0
        self.observers: list[Observer] = []
        self._rank, self._make_clock, self._write = rank, clock, write
        self._clock: Any = None
        self._open = False
        self._profiled = False
        self._steps: list[Step] = []
        self._loss: Any = None

    @property
    def steps(self) -> int:
        """Steps of the epoch that runs, or ran last."""
        return len(self._steps)

    @property
    def training(self) -> bool:
        """True once the first epoch has begun."""
        return self._open or self.epochs > 0

    def epoch_begins(self, profiled: bool) -> None:
        """Mark the start; waits for the device once, before the first step."""
        self.epoch_ends()
        for observer in self.observers:
            observer.begins(profiled)
        self._clock = self._clock or self._make_clock()
        self._clock.settle()
        self._wall, self._start = time.time(), self._clock.mark()
        self._open, self._profiled, self._steps, self._loss = True, profiled, [], None

    def lost(self, loss: Any) -> None:
        """The loss of the step that runs; kept as it is, so that nothing waits for the device."""
        self._loss = loss

    def step_ends(self, samples: int) -> None:
        """Close the step that runs."""
        self._steps.append(Step(len(self._steps), samples, self._clock.mark(), self._loss))
        self._loss = None
        for observer in self.observers:
            observer.step()

    def epoch_ends(self) -> None:
        """Write the epoch's records. A second call does nothing."""
        if not self._open:
            return
        self._open = False
        for observer in self.observers:
            observer.ends()
        self._clock.settle()
        before = self._start
        for step in self._steps:
            self._write(self._line(step, before))
            before = step.mark
        self.epochs += 1

    def _line(self, step: Step, before: Any) -> str:
        end = self._wall + self._clock.seconds(self._start, step.mark)
        took = self._clock.seconds(before, step.mark)
        loss = "none" if step.loss is None else repr(float(step.loss))
        return (
            f"[perfproof] step epoch={self.epochs} i={step.number} t={end:.6f} dt={took:.6f} "
            f"samples={step.samples} loss={loss} profiled={int(self._profiled)} rank={self._rank}"
        )


class CountedLoader:
    """Stands in for a trainer's loader: the same batches, at most `limit`, each one recorded."""

    def __init__(
        self,
        loader: Any,
        recorder: Recorder,
        samples: Callable[[Any], int],
        profiled: bool,
        limit: int | None = None,
    ) -> None:
        self._loader, self._recorder = loader, recorder
        self._samples, self._profiled, self._limit = samples, profiled, limit

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._loader)
        self._recorder.epoch_begins(self._profiled)
        taken = 0
        while self._limit is None or taken < self._limit:
            try:
                batch = next(batches)
            except StopIteration:
                break
            samples = self._samples(batch)
            taken += 1
            yield batch
            self._recorder.step_ends(samples)
        self._recorder.epoch_ends()
