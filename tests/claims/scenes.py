"""A hand-made step whose every number is known, and the way from a claim to its verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfproof.claims.verify_trace import verify
from perfproof.schema.claims import VerifiedClaim
from tests.claims.kineto import BACKWARD, Kineto, inventory_of, write_claims

GEMM = "nvjet_tst_128x128_NNT"
ADD = "void at::native::vectorized_elementwise_kernel<4, add>"
TOPOLOGY = {"topology": "intra_node", "decided_by": "by hand"}


def one_step() -> Kineto:
    """A step of 1000 µs: 550 µs busy, 450 µs idle.

    Compute: gemm 100..300 and, on another stream, 200..320; add 305..309 inside it, add 500..700,
    unlinked memset 700..720. Communication 600..800, so 80 exposed (720..800). Copies: HtoD
    790..810 (10 exposed), DtoH 830..850. Launched before the step: one kernel, which is not G.
    Gaps: 0..100 late, 320..500 queued (launched and returned before), 810..830 in flight (begun
    at 809), 850..1000 tail.
    """
    trace = Kineto(rank=0, world=2)
    trace.step(5, 0, 1000)
    trace.gpu("launched before", -50, -40, launch=-60)
    trace.gpu(GEMM, 100, 300, launch=20)
    trace.gpu(GEMM, 200, 320, launch=21)
    trace.gpu(ADD, 305, 309, launch=22)
    trace.gpu(ADD, 500, 700, launch=310)
    trace.gpu("Memset (Device)", 700, 720, cat="gpu_memset")
    trace.collective(600, 800, 330, [0, 1])
    trace.gpu("Memcpy HtoD (Pinned -> Device)", 790, 810, launch=340, cat="gpu_memcpy")
    trace.gpu("Memcpy DtoH (Device -> Pageable)", 830, 850, launch=809, cat="gpu_memcpy")
    trace.event("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 30, 150)
    trace.event("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 900, tid=5)
    trace.event("cuda_runtime", "cudaMalloc", 850, 950)
    trace.event("cuda_runtime", "cudaMalloc", 900, 980, tid=5)
    trace.event("cpu_op", "aten::linear", 400, 500)
    trace.event("cpu_op", "aten::addmm", 420, 470)
    trace.event("cpu_op", "autograd::engine::evaluate_function: X", 490, 600, tid=BACKWARD)
    trace.event("cpu_op", "aten::linear", 495, 550, tid=BACKWARD)
    trace.event("cpu_op", "aten::linear", 0, 1000, tid=77)
    return trace


def judged(
    tmp_path: Path, *claims: dict[str, Any], trace: Kineto | None = None
) -> list[VerifiedClaim]:
    (trace or one_step()).write(tmp_path / "run" / "trace_rank0.json.gz")
    path = write_claims(tmp_path / "claims.json", list(claims))
    return verify(path, inventory_of(tmp_path / "run")).claims
