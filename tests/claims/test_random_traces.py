"""Random traces on a small grid of times: ties, overlaps and empty events, both implementations."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.claims.tables import RankTables
from perfproof.claims.verifier.run_files import RunFiles
from perfproof.traces.tables import analyse
from tests.claims.kineto import Kineto, inventory_of
from tests.claims.test_recorded import compare

TIME = st.integers(0, 40)
SPAN = st.tuples(TIME, st.integers(0, 15))
KERNELS = st.sampled_from(
    ["nvjet_tst_128", "void elementwise_kernel<add>", "ncclDevKernel_AllReduce", "fmha_fwd",
     "__amd_rocclr_copyBufferAligned", "__amd_rocclr_fillBufferAligned"]
)  # fmt: skip
COPIES = st.sampled_from(["Memcpy HtoD (Pinned -> Device)", "Memcpy DtoD (Device -> Device)"])
GPU = st.one_of(
    st.tuples(st.just("kernel"), KERNELS, SPAN, st.none() | TIME),
    st.tuples(st.just("gpu_memcpy"), COPIES, SPAN, st.none() | TIME),
    st.tuples(st.just("gpu_memset"), st.just("Memset (Device)"), SPAN, st.none() | TIME),
)
HOST = st.one_of(
    st.tuples(st.just("cpu_op"), st.sampled_from(["aten::mm", "aten::add"]), SPAN),
    st.tuples(st.just("cpu_op"), st.just("autograd::engine::evaluate_function: MmBackward0"), SPAN),
    st.tuples(st.just("cuda_runtime"), st.sampled_from(["cudaFree", "cudaMalloc"]), SPAN),
    st.tuples(st.just("user_annotation"), st.just("enumerate(DataLoader)#next"), SPAN),
    st.tuples(
        st.just("user_annotation"), st.sampled_from(["ProfilerStep#1", "ProfilerStep#2"]), SPAN
    ),
)


@settings(max_examples=60, deadline=None)
@given(
    gpu=st.lists(GPU, max_size=8),
    host=st.lists(st.tuples(HOST, st.integers(1, 2)), max_size=8),
)
def test_every_number_agrees(gpu: list[Any], host: list[Any]) -> None:
    trace = Kineto()
    for category, name, (start, duration), launch in gpu:
        trace.gpu(name, start, start + duration, launch=launch, cat=category)
    for (category, name, (start, duration)), thread in host:
        trace.event(category, name, start, start + duration, tid=thread)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        trace.write(out / "run" / "trace_rank0.json.gz")
        inventory = inventory_of(out / "run")
        summary = analyse(inventory, out / "run", out)
        for rank in summary.ranks:
            if rank.window_kind != "empty" and rank.window_duration_ns:
                compare(RankTables(out, rank), RunFiles(inventory))
