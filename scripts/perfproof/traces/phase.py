"""Which phase of training a GPU event is of: by what encloses its launch."""

from __future__ import annotations

import re

import numpy as np

from perfproof.traces.context import Context
from perfproof.traces.intervals import Ints, Mask, covered_before, union

PHASES = ("forward", "backward", "optimizer", "unknown")
_FORWARD, _BACKWARD, _OPTIMIZER, _UNKNOWN = range(4)
_IS_BACKWARD = re.compile("^autograd::engine::|backward|_bwd", re.IGNORECASE)
_IS_OPTIMIZER = re.compile(r"^Optimizer\.step#|^aten::_fused_(?:adam|sgd|adagrad)")


def phases(context: Context) -> Ints:
    """Index into PHASES of each GPU event.

    `optimizer`: launched inside `Optimizer.step#…`; `backward`: the operation that launched it, or
    one around that, is of autograd's engine or named backward (recomputed activations too);
    `forward`: any other operation; `unknown`: no operation is recorded for it.
    """
    op = context.links.op
    found = np.where(op >= 0, _FORWARD, _UNKNOWN)
    if len(context.trace.ops):
        found[(op >= 0) & _around(context, _IS_BACKWARD)[op]] = _BACKWARD
        found[(op >= 0) & _around(context, _IS_OPTIMIZER)[op]] = _OPTIMIZER
    found[_in_marks(context)] = _OPTIMIZER
    return found


def _around(context: Context, pattern: re.Pattern[str]) -> Mask:
    """For each operation, whether its name or that of one around it matches."""
    names, used = context.trace.names, context.trace.ops.name
    wanted = [name for name in np.unique(used).tolist() if pattern.search(names[name])]
    inside: Mask = np.isin(used, wanted)
    parents = context.links.tree.parents()
    while True:
        wider = inside | (inside[parents] & (parents >= 0))
        if (wider == inside).all():
            return inside
        inside = wider


def _in_marks(context: Context) -> Mask:
    marks, names = context.trace.marks, context.trace.names
    wanted = [name for name in np.unique(marks.name).tolist() if _IS_OPTIMIZER.search(names[name])]
    chosen = np.isin(marks.name, wanted)
    flat = union(marks.start[chosen], marks.end[chosen])
    launched = context.launched
    return (covered_before(flat, launched + 1) > covered_before(flat, launched)) & (
        context.links.linked
    )
