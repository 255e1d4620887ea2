"""Forged classes and statements, and files that the verifier cannot read whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfproof.claims.verify_trace import verify
from perfproof.schema.claims import Verdict, VerifiedClaim
from tests.claims.kineto import MAIN, Kineto, claim, inventory_of, write_claims
from tests.claims.scenes import GEMM, TOPOLOGY, judged, one_step

GROUP_CLAIM = {"group": "gemm", "name_regex": "nvjet", "not_regex": ""}


class TestGroups:
    """The class of a kernel claim follows from its group, so the group is checked."""

    @pytest.mark.parametrize(
        ("params", "cls", "note"),
        [
            ({"group": "scatter_gather"}, "gpu_memory_hbm", "are not of group scatter_gather"),
            ({"group": "other"}, "gpu_memory_hbm", "are not of group other"),
            ({"name_regex": "nvjet|elementwise"}, "gpu_compute", "are not of group gemm"),
            ({"group": "elementwise", "name_regex": "absent"}, "gpu_memory_hbm", "miss kernels"),
            ({}, "gpu_memory_hbm", "the vocabulary says gpu_compute"),
        ],
    )
    def test_a_forged_group_is_refuted(
        self, tmp_path: Path, params: dict[str, str], cls: str, note: str
    ) -> None:
        made = claim("kernel_group_fraction", 0.22, cls, params={**GROUP_CLAIM, **params})
        (found,) = judged(tmp_path, made)
        assert (found.verdict, note in found.note) == (Verdict.REFUTED, True), found.note

    @pytest.mark.parametrize("group", ["comm", "memset", "my own"])
    def test_a_group_that_no_such_claim_can_have(self, tmp_path: Path, group: str) -> None:
        params = {**GROUP_CLAIM, "group": group}
        made = claim("kernel_group_fraction", 0.22, "gpu_memory_hbm", params=params)
        (found,) = judged(tmp_path, made)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "no group of compute kernels" in found.note

    def test_a_single_kernel_has_its_group(self, tmp_path: Path) -> None:
        nccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        made = [
            claim("top_kernel_fraction", value, "gpu_memory_hbm",
                  params={"kernel": kernel, "group": "elementwise"})
            for kernel, value in ((GEMM, 0.22), (nccl, 0.2))
        ]  # fmt: skip
        found = judged(tmp_path, *made)
        assert {c.verdict for c in found} == {Verdict.REFUTED}
        assert ["of group gemm" in c.note for c in found] == [True, False]
        assert "of group comm" in found[1].note

    def test_a_name_that_is_a_collective_elsewhere(self, tmp_path: Path) -> None:
        """The events that say so are of another group."""
        trace = Kineto().step(1, 0, 1000).gpu("my_gemm", 0, 200, launch=0)
        trace.gpu("my_gemm", 300, 900, launch=1, **{"Collective name": "allgather"})
        params = {"kernel": "my_gemm", "group": "gemm"}
        made = claim("top_kernel_fraction", 0.2, "gpu_compute", params=params)
        (found,) = judged(tmp_path, made, trace=trace)
        assert found.verdict is Verdict.VERIFIED, found.note


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("45.0 % of the window, not 99.0 %", Verdict.VERIFIED),
        ("45 percent of the window", Verdict.VERIFIED),
        ("nearly half", Verdict.VERIFIED),
        ("the GPU idles 99.0 % of the step (45.0 %)", Verdict.REFUTED),
        ("99 per cent (45.0 %)", Verdict.REFUTED),
        ("-45.0 %", Verdict.REFUTED),
    ],
)
def test_the_first_percentage_is_the_value(
    tmp_path: Path, statement: str, verdict: Verdict
) -> None:
    made = claim("gpu_idle_fraction", 0.45, "cpu_dispatch", statement=statement)
    assert judged(tmp_path, made)[0].verdict is verdict


def verdicts_of_text(tmp_path: Path, text: str, *claims: dict[str, Any]) -> list[VerifiedClaim]:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "trace_rank0.json").write_text(text, encoding="utf-8")
    path = write_claims(tmp_path / "claims.json", list(claims))
    return verify(path, inventory_of(tmp_path / "run")).claims


class TestDamage:
    """A true claim is never refuted because the verifier read less than the analyst."""

    TEXT = json.dumps({**one_step().header, "traceEvents": one_step().events})
    IDLE = claim("gpu_idle_fraction", 0.45, "cpu_dispatch")

    def test_what_can_be_mended_is_verified(self, tmp_path: Path) -> None:
        text = self.TEXT.replace("Memcpy HtoD", "Memcpy \\x HtoD")
        (found,) = verdicts_of_text(tmp_path, text, self.IDLE)
        assert found.verdict is Verdict.VERIFIED, found.note
        assert "1 damaged events mended" in found.note

    @pytest.mark.parametrize(
        ("old", "new"), [("Memcpy HtoD", 'Memcpy " HtoD'), ("Memcpy DtoH", '" "'), ("]}", None)]
    )
    def test_what_is_lost_makes_every_claim_inconclusive(
        self, tmp_path: Path, old: str, new: str | None
    ) -> None:
        at = self.TEXT.rindex(old)
        text = self.TEXT[:at] + ("" if new is None else new + self.TEXT[at + len(old) :])
        wait = claim("collective_wait_fraction", 0.1, "comm_xgmi",
                     params={**TOPOLOGY, "straggler": 0})  # fmt: skip
        found = verdicts_of_text(tmp_path, text, self.IDLE, wait)
        assert {c.verdict for c in found} == {Verdict.INCONCLUSIVE}
        assert all("incomplete" in c.note for c in found)

    @pytest.mark.parametrize("time", ["1e30", "1e308", "1e999999", "5e15"])
    def test_a_time_beyond_all_clocks_is_none(self, tmp_path: Path, time: str) -> None:
        extra = f'{{"ph": "X", "cat": "kernel", "name": "k", "ts": {time}, "dur": 5}}, '
        text = self.TEXT.replace('"traceEvents": [', '"traceEvents": [' + extra)
        (found,) = verdicts_of_text(tmp_path, text, self.IDLE)
        assert found.verdict is Verdict.VERIFIED, found.note


def test_a_copy_that_says_it_is_a_collective_is_in_doubt(tmp_path: Path) -> None:
    trace = one_step()
    trace.gpu("Memcpy DtoD", 900, 910, 340, "gpu_memcpy", **{"Collective name": "allgather"})
    made = [
        claim("exposed_comm_fraction", 0.09, "comm_xgmi", params=TOPOLOGY),
        claim("exposed_memcpy_fraction", 0.0, "gpu_memory_hbm", params={"direction": "DtoD"}),
        claim("gpu_idle_fraction", 0.44, "cpu_dispatch"),
    ]
    found = judged(tmp_path, *made, trace=trace)
    assert [c.verdict.value for c in found] == ["inconclusive", "inconclusive", "verified"]
    assert "says it is a collective" in found[0].note


def test_two_loader_threads_without_a_step_are_in_doubt(tmp_path: Path) -> None:
    trace = Kineto().gpu("k", 0, 50, launch=0).gpu("k", 90, 100, launch=1)
    for thread in (MAIN, MAIN + 1):
        trace.event("user_annotation", "enumerate(DataLoader)#x", 50, 60, tid=thread)
    made = [claim("dataloader_gpu_idle_fraction", 0.1, "dataloader"),
            claim("gpu_idle_fraction", 0.4, "cpu_dispatch")]  # fmt: skip
    found = judged(tmp_path, *made, trace=trace)
    assert [c.verdict.value for c in found] == ["inconclusive", "verified"]
    assert "several threads load data" in found[0].note


def test_a_large_world_costs_no_memory(tmp_path: Path) -> None:
    trace = one_step()
    trace.header["distributedInfo"]["world_size"] = 10**12
    del trace.events[[e["name"].startswith("nccl") for e in trace.events].index(True)]["args"]
    params = {**TOPOLOGY, "topology": "inter_node"}
    made = claim("exposed_comm_fraction", 0.08, "comm_scaleout", params=params)
    (found,) = judged(tmp_path, made, trace=trace)
    assert found.verdict is Verdict.VERIFIED, found.note


class TestPartOf:
    """`part_of` is checked like a number."""

    GROUP = claim(
        "kernel_group_fraction", 0.22, "gpu_compute", share_of_step=0.216,
        params={"group": "gemm", "name_regex": "nvjet", "not_regex": ""},
        reasons={"remedy": "not_applicable"},
    )  # fmt: skip
    KERNEL = claim(
        "top_kernel_fraction", 0.22, "gpu_compute", share_of_step=0.216, id="TR-002",
        params={"kernel": GEMM, "group": "gemm"}, reasons={"remedy": "not_applicable"},
    )  # fmt: skip

    def of_kernel(self, tmp_path: Path, outer: dict[str, Any], *parts: str) -> tuple[str, str]:
        _, found = judged(tmp_path, outer, {**self.KERNEL, "part_of": list(parts)})
        return found.verdict.value, found.note

    def test_a_kernel_is_part_of_its_group(self, tmp_path: Path) -> None:
        assert self.of_kernel(tmp_path, self.GROUP, "TR-001")[0] == "verified"

    @pytest.mark.parametrize("name", ["TR-009", "TR-002"])
    def test_no_such_claim(self, tmp_path: Path, name: str) -> None:
        verdict, note = self.of_kernel(tmp_path, self.GROUP, name)
        assert verdict == "refuted"
        assert f"part_of names {name}, no other claim of this file" in note

    @pytest.mark.parametrize("share", [0.1, None])
    def test_a_claim_that_does_not_rank_above(self, tmp_path: Path, share: float | None) -> None:
        reasons = {"remedy": "not_applicable"}
        reasons |= {"share_of_step": "not_applicable"} if share is None else {}
        outer = {**self.GROUP, "share_of_step": share, "reasons": reasons}
        verdict, note = self.of_kernel(tmp_path, outer, "TR-001")
        assert (verdict, "does not rank above" in note) == ("refuted", True)

    def test_another_time(self, tmp_path: Path) -> None:
        idle = claim("gpu_idle_fraction", 0.45, "cpu_dispatch", share_of_step=0.38,
                     reasons={"remedy": "not_applicable"})  # fmt: skip
        verdict, note = self.of_kernel(tmp_path, idle, "TR-001")
        assert (verdict, "holds only 0.0 % of this one's" in note) == ("refuted", True)

    def test_a_claim_that_says_nothing(self, tmp_path: Path) -> None:
        outer = {**self.GROUP, "params": {"group": "gemm"}}
        verdict, note = self.of_kernel(tmp_path, outer, "TR-001")
        assert (verdict, "'name_regex' is None" in note) == ("inconclusive", True)


@pytest.mark.parametrize(
    ("with_gpu", "says"),
    [(True, "4 CPU events and 1 GPU events of rank 0"), (False, "3 CPU events of rank 0")],
)
def test_the_note_says_what_was_counted(tmp_path: Path, with_gpu: bool, says: str) -> None:
    trace = Kineto().step(1, 0, 100).event("cpu_op", "aten::mm", 0, 50)
    trace.event("user_annotation", "enumerate(DataLoader)#x", 50, 60)
    trace.event("cuda_runtime", "cudaMalloc", 60, 70)
    trace.event("cpu_op", "aten::mm", 200, 300)
    if with_gpu:
        trace.gpu("k", 90, 95, launch=85)
    made = claim("cpu_op_self_fraction", 0.5, "host_cpu", params={"op": "aten::mm"})
    assert f"recomputed from {says}" in judged(tmp_path, made, trace=trace)[0].note
