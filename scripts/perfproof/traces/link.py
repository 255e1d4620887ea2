"""From a GPU event to the call that launched it and the CPU operation that made the call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfproof.traces.intervals import Ints, Mask
from perfproof.traces.model import Trace
from perfproof.traces.optree import OpTree


@dataclass(frozen=True)
class Links:
    """For each GPU event, indices into calls and operations; -1 where none is recorded."""

    call: Ints
    op: Ints
    tree: OpTree

    @property
    def linked(self) -> Mask:
        """Which GPU events have a recorded launch."""
        return self.call >= 0


def link(trace: Trace) -> Links:
    """Link all GPU events.

    Launch: the runtime or driver call with the same correlation. Operation: the innermost one
    open on the launching thread when the call began; without a recorded call, the one that
    carries the event's External id.
    """
    gpu, calls = trace.gpu, trace.calls
    call = _lookup(calls.correlation, gpu.correlation)
    tree = OpTree(trace.ops)
    op = np.full(len(gpu), -1, np.int64)
    linked = np.flatnonzero(call >= 0)
    at = call[linked]
    op[linked] = tree.innermost(calls.thread[at], calls.start[at])
    # Files of 2022-23 repeat the correlation as External id: that names no operation.
    alone = np.flatnonzero((call < 0) & (gpu.external != gpu.correlation))
    op[alone] = _lookup(trace.ops.external, gpu.external[alone])
    return Links(call, op, tree)


def _lookup(keys: Ints, wanted: Ints) -> Ints:
    """Index of the first key equal to each wanted number (> 0), -1 for none."""
    found = np.full(wanted.shape, -1, np.int64)
    if not keys.size:
        return found
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], wanted)
    inside = place < keys.size
    index = order[np.where(inside, place, 0)]
    hit = inside & (keys[index] == wanted) & (wanted > 0)
    found[hit] = index[hit]
    return found
