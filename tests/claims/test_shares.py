"""What a fix can give back, and which claims count the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.schema.claims import Verdict
from tests.claims import test_analyze_trace as traces
from tests.claims.kineto import Kineto
from tests.claims.runs import through
from tests.claims.scenes import ADD, GEMM


def waits_in_a_copy(trace: Kineto, at: float) -> None:
    """A synchronisation in a copy, 890 and 900 µs; the GPU works for 695 µs of both."""
    trace.gpu(GEMM, at + 5, at + 700, launch=at)
    trace.event("cpu_op", "aten::copy_", at + 5, at + 905)
    trace.event("cuda_runtime", "cudaStreamSynchronize", at + 10, at + 900)


def test_host_time_counts_only_while_the_gpu_idles(tmp_path: Path) -> None:
    traces.steps(Kineto(), waits_in_a_copy).write(tmp_path / "run" / "trace_rank0.json.gz")
    claims, verdicts = through(tmp_path)
    claim = traces.by_metric(claims, "runtime_call_fraction")
    assert claim.value == pytest.approx(0.89)
    assert claim.share_of_step == pytest.approx(0.2)
    assert "Meanwhile the GPU idles in 20.0 % of the window" in claim.statement
    assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}


def test_a_call_beside_a_busy_gpu_is_no_claim_however_much_the_gpu_idles_elsewhere(
    tmp_path: Path,
) -> None:
    def fill(trace: Kineto, at: float) -> None:
        trace.gpu(GEMM, at + 5, at + 400, launch=at)
        trace.event("cuda_runtime", "cudaStreamSynchronize", at + 10, at + 405)

    traces.steps(Kineto(), fill).write(tmp_path / "run" / "trace_rank0.json.gz")
    claims, _ = through(tmp_path)
    assert traces.by_metric(claims, "gpu_idle_fraction").share_of_step == pytest.approx(0.605)
    assert "runtime_call_fraction" not in {claim.metric for claim in claims.claims}


def test_kernels_count_only_while_nothing_else_runs(tmp_path: Path) -> None:
    def fill(trace: Kineto, at: float) -> None:
        trace.gpu(GEMM, at + 5, at + 605, launch=at, stream=7)
        trace.gpu(ADD, at + 305, at + 1000, launch=at + 1, stream=9)

    traces.steps(Kineto(), fill).write(tmp_path / "run" / "trace_rank0.json.gz")
    claims, verdicts = through(tmp_path)
    found = {claim.params["group"]: claim for claim in claims.claims if claim.params.get("kernel")}
    assert found["gemm"].value == pytest.approx(0.6)
    assert found["gemm"].share_of_step == pytest.approx(0.3)
    assert found["elementwise"].share_of_step == pytest.approx(0.395)
    assert "No other GPU work runs beside it in 30.0 %" in found["gemm"].statement
    assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}


class TestPartOf:
    """Shares that count time which a claim above counts already."""

    @staticmethod
    def parts(tmp_path: Path) -> dict[str, set[str]]:
        """By metric the metrics of the claims that hold it; all claims must be verified."""
        claims, verdicts = through(tmp_path)
        assert [c.note for c in verdicts.claims if c.verdict is not Verdict.VERIFIED] == []
        metric = {claim.id: claim.metric for claim in claims.claims}
        return {c.metric: {metric[name] for name in c.part_of} for c in claims.claims}

    def test_a_synchronisation_in_a_copy_and_a_kernel_in_its_group(self, tmp_path: Path) -> None:
        traces.steps(Kineto(), waits_in_a_copy).write(tmp_path / "run" / "trace_rank0.json.gz")
        parts = self.parts(tmp_path)
        assert parts["top_kernel_fraction"] == {"kernel_group_fraction"}
        assert parts["kernel_group_fraction"] == parts["gpu_idle_fraction"] == set()
        assert parts["runtime_call_fraction"] == {"gpu_idle_fraction", "cpu_op_self_fraction"}

    def test_a_wait_in_exposed_communication(self, tmp_path: Path) -> None:
        traces.TestRanks.write(tmp_path / "run")
        parts = self.parts(tmp_path)
        assert parts["collective_wait_fraction"] == {"exposed_comm_fraction"}
        assert parts["exposed_comm_fraction"] == set()

    def test_loading_without_workers_on_a_cpu(self, tmp_path: Path) -> None:
        def fill(trace: Kineto, at: float) -> None:
            trace.event("user_annotation", "enumerate(DataLoader)#x", at, at + 300)
            trace.event("cpu_op", "aten::stack", at + 5, at + 295)

        traces.steps(Kineto(devices=0), fill).write(tmp_path / "run" / "trace_rank0.json.gz")
        assert self.parts(tmp_path) == {
            "dataloader_fraction": set(),
            "cpu_op_self_fraction": {"dataloader_fraction"},
        }

    def test_activities_that_share_little_time_are_apart(self, tmp_path: Path) -> None:
        def fill(trace: Kineto, at: float) -> None:
            trace.gpu(GEMM, at + 5, at + 105, launch=at)
            trace.event("cpu_op", "aten::copy_", at + 110, at + 600)
            trace.event("cuda_runtime", "cudaMalloc", at + 500, at + 800)

        traces.steps(Kineto(), fill).write(tmp_path / "run" / "trace_rank0.json.gz")
        assert "cpu_op_self_fraction" not in self.parts(tmp_path)["runtime_call_fraction"]
