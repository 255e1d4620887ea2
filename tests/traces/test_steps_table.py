from __future__ import annotations

from perfproof.traces.steps_table import steps
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of


def test_work_belongs_to_the_step_that_launched_it():
    trace = TraceBuilder()
    trace.step(7, 1000, 100)
    trace.step(8, 1100, 100)
    trace.mark("enumerate(DataLoader)#_It.__next__", 1000, 10)
    trace.mark("enumerate(DataLoader)#_It.__next__", 1090, 20)
    trace.call("cudaStreamSynchronize", 1050, 30)
    trace.call("cudaDeviceSynchronize", 1150, 30)
    trace.kernel("gemm", 1120, 50, launched=1020)
    trace.kernel("gemm", 1130, 50, launched=1025, stream=9)
    trace.kernel("ncclDevKernel", 1175, 10, launched=1030, stream=11)
    trace.kernel("gemm", 1200, 40, launched=1110)
    trace.kernel("Memcpy DtoH", 1235, 15, launched=1120, call="cudaMemcpyAsync", cat="gpu_memcpy")
    rows = by(steps(context_of(trace)), "step")
    assert rows[7] == {
        "step": 7,
        "start_ns": 1_000_000,
        "duration_us": 100,
        "gpu_events": 3,
        "launches": 3,
        "busy_us": 65,
        "compute_us": 60,
        "comm_us": 10,
        "exposed_comm_us": 5,
        "memcpy_us": 0,
        "exposed_memcpy_us": 0,
        "dataloader_us": 20,
        "stream_sync_us": 30,
    }
    assert rows[8]["gpu_events"] == 2
    assert rows[8]["launches"] == 1
    assert (rows[8]["memcpy_us"], rows[8]["exposed_memcpy_us"]) == (15, 10)
    assert (rows[8]["dataloader_us"], rows[8]["stream_sync_us"]) == (10, 0)


def test_no_steps():
    trace = TraceBuilder()
    trace.kernel("gemm", 1120, 50)
    assert steps(context_of(trace)).rows == []
