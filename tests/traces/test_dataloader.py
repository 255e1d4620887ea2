from __future__ import annotations

from perfproof.traces.dataloader import dataloader
from tests.traces.builder import PID, TraceBuilder
from tests.traces.make import context_of, records

NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_waiting_of_the_step_thread_and_what_of_it_leaves_the_gpu_idle():
    trace = TraceBuilder()
    trace.step(1, 1000, 1000)
    trace.mark(NEXT, 950, 150)
    trace.mark(NEXT, 1500, 100)
    trace.mark(NEXT, 2500, 100)
    trace.mark(NEXT, 1700, 100, tid=5)
    trace.mark("dataloading", 1000, 900)
    trace.kernel("k", 1050, 500, launched=1010)
    (row,) = records(dataloader(context_of(trace)))
    assert row == {
        "thread": f"{PID}/{PID}",
        "count": 2,
        "total_us": 200,
        "fraction_of_window": 0.2,
        "gpu_idle_us": 100,
        "gpu_idle_fraction_of_window": 0.1,
    }


def test_cpu_only_and_without_steps_any_thread_counts():
    trace = TraceBuilder()
    trace.op("aten::add", 0, 100)
    trace.mark(NEXT, 10, 20, tid=5)
    trace.mark(NEXT, 20, 20, tid=6)
    rows = records(dataloader(context_of(trace)))
    assert [(row["total_us"], row["gpu_idle_us"]) for row in rows] == [(20, 20), (20, 20)]
