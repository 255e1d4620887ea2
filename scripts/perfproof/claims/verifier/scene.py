"""The part of a trace that metrics are about: the window W and the GPU events G in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from perfproof.claims.verifier.raw import GpuEvent, HostEvent, RawTrace
from perfproof.claims.verifier.stack import own_pieces
from perfproof.claims.verifier.sweep import Interval, coverage, length


class CannotSayError(ValueError):
    """The number cannot be recomputed; the message says why."""


@dataclass(frozen=True)
class Scene:
    """W and G of one rank, as `docs/metrics.md` defines them."""

    trace: RawTrace
    window: Interval
    gpu: list[GpuEvent]

    @property
    def width(self) -> int:
        """Length of the window in ns."""
        return self.window[1] - self.window[0]

    def role(self, *roles: str) -> list[Interval]:
        """Intervals of the GPU events with one of these roles."""
        return [(event.start, event.end) for event in self.gpu if event.role in roles]

    @cached_property
    def idle(self) -> int:
        """Time of the window without a GPU event, ns."""
        everything = [(event.start, event.end) for event in self.gpu]
        return self.width - length(coverage([[self.window], everything]), 0b11)

    @cached_property
    def own_pieces(self) -> dict[str, list[Interval]]:
        """By operator: where it is the innermost one."""
        return own_pieces(self.trace)

    def clipped(self, events: list[HostEvent]) -> list[HostEvent]:
        """Host events cut to the window; those outside are dropped."""
        low, high = self.window
        return [
            HostEvent(max(e.start, low), min(e.end, high), e.name, e.thread)
            for e in events
            if e.start < high and e.end > low
        ]


def scene_of(trace: RawTrace) -> Scene:
    """Find window and GPU events. Raises `CannotSayError` for a trace with nothing to span it."""
    if trace.steps:
        first = min(step.start for step in trace.steps)
        last = max(step.end for step in trace.steps)
        chosen = [event for event in trace.gpu if first <= _belongs_at(event) < last]
        if chosen or not trace.gpu:
            end = max([last, *(event.end for event in chosen)])
            return _scene(trace, (first, end), chosen)
    if trace.gpu:
        return _scene(trace, _span([(e.start, e.end) for e in trace.gpu]), trace.gpu)
    return _scene(trace, _span([(e.start, e.end) for e in trace.cpu_ops]), [])


def _belongs_at(event: GpuEvent) -> int:
    return event.start if event.launch is None else event.launch


def _span(intervals: list[Interval]) -> Interval:
    if not intervals:
        raise CannotSayError("the trace holds no step, GPU event or CPU operator")
    return min(start for start, _ in intervals), max(end for _, end in intervals)


def _scene(trace: RawTrace, window: Interval, gpu: list[GpuEvent]) -> Scene:
    if window[1] <= window[0]:
        raise CannotSayError("the window of the trace has no length")
    return Scene(trace, window, gpu)
