"""Which operator is innermost when: a sweep over one thread that keeps its call stack."""

from __future__ import annotations

from collections import defaultdict

from perfproof.claims.verifier.raw import HostEvent, RawTrace
from perfproof.claims.verifier.sweep import Interval

_BACKWARD = "autograd::engine::evaluate_function"


def training_thread(trace: RawTrace) -> str | None:
    """The thread of the first step; None without steps."""
    return min(trace.steps, key=lambda step: step.start).thread if trace.steps else None


def own_pieces(trace: RawTrace) -> dict[str, list[Interval]]:
    """By operator: where it is the innermost one of a training or backward thread.

    Without steps all threads count.
    """
    threads: dict[str, list[HostEvent]] = defaultdict(list)
    for event in trace.cpu_ops:
        threads[event.thread].append(event)
    training = training_thread(trace)
    pieces: dict[str, list[Interval]] = defaultdict(list)
    for thread, events in threads.items():
        if training in (None, thread) or any(e.name.startswith(_BACKWARD) for e in events):
            _sweep(events, pieces)
    return dict(pieces)


def _sweep(events: list[HostEvent], pieces: dict[str, list[Interval]]) -> None:
    """Of operators that start together the longer one is the caller, then the earlier in file."""
    edges = []
    for number, event in enumerate(events):
        if event.end > event.start:
            edges.append((event.start, 1, -event.end, number))
            edges.append((event.end, 0, -event.start, number))
    edges.sort()
    stack: list[int] = []
    before = 0
    for time, opens, _, number in edges:
        if stack and time > before:
            pieces[events[stack[-1]].name].append((before, time))
        before = time
        if opens:
            stack.append(number)
        else:
            stack.remove(number)
