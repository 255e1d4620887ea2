from __future__ import annotations

from perfproof.traces.phase import PHASES, phases
from tests.traces.builder import TraceBuilder
from tests.traces.make import context_of


def test_phases_by_what_encloses_the_launch():
    trace = TraceBuilder()
    trace.op("aten::linear", 0, 100)
    trace.kernel("k", 200, 10, launched=50)
    engine = "autograd::engine::evaluate_function: MmBackward0"
    trace.op(engine, 300, 100)
    trace.op("aten::mm", 310, 50)
    trace.kernel("k", 420, 10, launched=320)
    trace.mark("Optimizer.step#AdamW.step", 500, 100)
    trace.op("aten::add_", 510, 50)
    trace.kernel("k", 620, 10, launched=520)
    trace.kernel("k", 720, 10, launched=700)
    trace.gpu("k", 530, 10)
    context = context_of(trace)
    found = dict(zip(context.gpu.start.tolist(), phases(context).tolist(), strict=True))
    names = [PHASES[found[start * 1000]] for start in (200, 420, 620, 720, 530)]
    assert names == ["forward", "backward", "optimizer", "unknown", "unknown"]


def test_a_trace_without_operations():
    trace = TraceBuilder()
    trace.gpu("k", 0, 10)
    assert [PHASES[at] for at in phases(context_of(trace)).tolist()] == ["unknown"]
