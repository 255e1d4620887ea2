"""Recorded traces and runs: two implementations of every metric, and seeded wrong claims.

The tables (vectorised unions over NumPy columns) and the verifier (an event sweep over its own
reading of the file) share no code. Every number of every table row is compared, not only those
that become claims.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfproof.artifacts.inventory import take_inventory
from perfproof.claims import analyze_telemetry, analyze_trace, verify_telemetry, verify_trace
from perfproof.claims.candidates import Candidate, exposed_comm, gpu_candidates
from perfproof.claims.candidates_host import host_candidates
from perfproof.claims.tables import RankTables
from perfproof.claims.verifier.judge import LEAST_HELD
from perfproof.claims.verifier.ranks import waiting
from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.claims.verifier.share import ClaimTimes, claim_time, held, total
from perfproof.core.files import write_record
from perfproof.schema.claims import BottleneckClass, Claim, ClaimSet, Verdict
from perfproof.schema.run import Inventory
from perfproof.schema.traces import TraceSummary
from perfproof.telemetry.summarize import summarize
from perfproof.traces.tables import analyse
from tests.claims.kineto import claim, write_claims

QUICK = [
    "runs/cpu_mini/hydragnn_mace_nojit",
    "runs/hydragnn/egnn_fp64_b40_h1000_ddp2_trace",
    "runs/orbit2/8m_fp32_b32_trace",
    "traces/hta/a100_ddp_rank0of2_nccl_meta.json.gz",
    "traces/hta/cpu_only_rank34of300.json.gz",
    "traces/hta/gp100_gpu_user_annotation.json.gz",
    "traces/hta/multirank_a",
    "traces/tracelens/h100_bert-small.json.gz",
    "traces/tracelens/mi210_gpu_only.json.gz",
    "traces/tracelens/mi300_resnet_act_checkpoint.json.gz",
    "traces/tracelens/mi300_torch_compile_triton.json.gz",
    "traces/tracelens/mi300_vllm_decode_hipgraph.json.gz",
]
SLOW = [
    "runs/orbit2/117m_bf16_b8_fsdp2_trace",
    "runs/cpu_mini/orbit2_tiny",
    "runs/hydragnn/egnn_fp64_b32_h1000_trace",
    "runs/hydragnn/mace_fp32_b32_defjit_trace",
    "runs/hydragnn/mace_fp32_b32_ownprofiler_stack_shapes",
    "runs/hydragnn/mace_fp64_b32_trace",
    "runs/orbit2/117m_bf16_b8_1gpu_shapes",
    "runs/orbit2/117m_bf16_b8_trace",
    "runs/orbit2/117m_fp32_b8_trace",
    "traces/hta/a100_rank3of8_6steps_no_ac2g.json.gz",
    "traces/hta/mi250_minitoy_train.json.gz",
    "traces/hta/v100_ddp_rank1of2.json.gz",
    "traces/hta/v100_ns_abs_ts.pt.trace.json.gz",
    "traces/kineto/v100_resnet50_num_workers_0_old_schema.pt.trace.json.gz",
    "traces/kineto/v100_resnet50_num_workers_4_old_schema.pt.trace.json.gz",
    "traces/tracelens/h100_owlv2.json.gz",
    "traces/tracelens/mi300_bert-small.json.gz",
    "traces/tracelens/mi300_xdit_sd3.5.json.gz",
]
NAMES = QUICK + [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]


def tables_of(path: Path, out: Path) -> tuple[Inventory, TraceSummary]:
    inventory = take_inventory(path, "artifacts/hand-made")
    return inventory, analyse(inventory, Path(inventory.root), out)


@pytest.mark.parametrize("name", NAMES)
def test_two_implementations_agree_and_every_claim_is_verified(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    inventory, summary = tables_of(shared_data / name, tmp_path)
    files = RunFiles(inventory)
    for rank in summary.ranks:
        compare(RankTables(tmp_path, rank, summary.cross_rank), files)
    compare_waits(tmp_path, summary, files)
    claims = analyze_trace.analyze(summary, tmp_path, inventory)
    write_record(tmp_path / "claims.json", claims)
    found = verify_trace.verify_with(tmp_path / "claims.json", files)
    assert [(c.verdict, c.note) for c in found.claims if c.verdict is not Verdict.VERIFIED] == []
    compare_parts(claims.claims, ClaimTimes(files))


def compare_parts(claims: list[Claim], times: ClaimTimes) -> None:
    """`part_of` leaves out no claim that holds the time of another, by the verifier's count."""
    ranked = [claim for claim in claims if claim.share_of_step is not None]
    for number, inner in enumerate(ranked):
        mine = times.of(inner.ranks[0], inner.metric, inner.params) or []
        for outer in ranked[:number]:
            try:
                theirs = times.of(inner.ranks[0], outer.metric, outer.params)
            except CannotSayError:
                theirs = []
            part = held(mine, theirs or [])
            if abs(part - LEAST_HELD) > 1e-6:
                assert (outer.id in inner.part_of) is (part > LEAST_HELD), (inner, outer, part)


def test_waiting_for_a_working_gpu_is_no_bottleneck(shared_data: Path, tmp_path: Path) -> None:
    """32 % in copies and 30 % in synchronisation: meanwhile the GPU idles 0.7 and 0.4 %.

    (Outside the loader, which copies too.)
    """
    path = shared_data / "traces/tracelens/h100_owlv2.json.gz"
    inventory, summary = tables_of(path, tmp_path)
    one, files = RankTables(tmp_path, summary.ranks[0]), RunFiles(inventory)
    found = {c.params.get("op") or c.params.get("call"): c for c in host_candidates(one)}
    for name, value, share in (
        ("aten::copy_", 0.3203, 0.0074),
        ("cudaStreamSynchronize", 0.2962, 0.004),
    ):
        assert (found[name].value, found[name].share) == pytest.approx((value, share), abs=5e-4)
        compare_share(found[name], files)
    claims = analyze_trace.analyze(summary, tmp_path, inventory).claims
    assert BottleneckClass.HOST_CPU not in {claim.bottleneck_class for claim in claims}


def compare(tables: RankTables, files: RunFiles) -> None:
    """Every row of the rank's tables against the verifier's number."""
    for one in rows_of(tables):
        try:
            found = verify_trace.RECOMPUTE[one.metric](files.scene(one.rank), one.params)
        except CannotSayError:
            assert one.value == 0, one
        else:
            assert found == pytest.approx(one.value, rel=1e-9, abs=1e-9), one
            compare_share(one, files)


def compare_share(one: Candidate, files: RunFiles) -> None:
    """The part that bounds the share, likewise."""
    time = claim_time(files, one.rank, one.metric, one.params)
    assert (time is None) is (one.share is None), one
    if time is not None:
        share = total(time) / files.scene(one.rank).width
        assert share == pytest.approx(one.share, rel=1e-9, abs=1e-9), one


def rows_of(tables: RankTables) -> Iterator[Candidate]:
    yield from host_candidates(tables)
    if tables.rank.gpu_events:
        yield from gpu_candidates(tables)
        yield exposed_comm(tables)


def compare_waits(out: Path, summary: TraceSummary, files: RunFiles) -> None:
    table = summary.cross_rank.get("collective_wait")
    if table is None:
        return
    with (out / table.file).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = waiting(files.scenes())
    assert {int(r["rank"]): float(r["wait_us"]) for r in rows} == pytest.approx(
        {rank: there.total / 1000 for rank, there in found.items()}
    )
    alone = {rank: claim_time(files, rank, "collective_wait_fraction", {}) for rank in found}
    assert {int(r["rank"]): float(r["alone_us"]) for r in rows} == pytest.approx(
        {rank: total(time or []) / 1000 for rank, time in alone.items()}
    )


RESNET = "traces/tracelens/mi300_resnet_act_checkpoint.json.gz"
FSDP = "runs/orbit2/117m_bf16_b8_fsdp2_trace"
INTRA = {"topology": "intra_node", "decided_by": "GPUs visible to a rank"}


@pytest.fixture(scope="module")
def fsdp(shared_data: Path) -> RunFiles:
    """The recorded run of two ranks, read once."""
    return RunFiles(take_inventory(shared_data / FSDP, "artifacts/hand-made"))


class TestSeededFaults:
    """Wrong numbers on real data, each of a kind that was really reported somewhere."""

    def verdict(self, files: RunFiles, tmp_path: Path, **made: Any) -> tuple[Verdict, str]:
        claims = write_claims(tmp_path / "claims.json", [claim(**made)])
        (found,) = verify_trace.verify_with(claims, files).claims
        return found.verdict, found.note

    def test_a_report_that_counts_linked_events_only(
        self, shared_data: Path, tmp_path: Path
    ) -> None:
        """TraceLens leaves out 968 of 3653 GPU events here: 62 % exposed, 0.7 % idle."""
        report = shared_data / "tracelens-output" / "mi300_resnet_act_checkpoint"
        with (report / "gpu_timeline.csv").open(encoding="utf-8", newline="") as stream:
            share = {row["type"]: float(row["percent"]) / 100 for row in csv.DictReader(stream)}
        files = RunFiles(take_inventory(shared_data / RESNET, "artifacts/hand-made"))
        for metric, value, cls, params in (
            ("gpu_idle_fraction", share["idle_time"], "cpu_dispatch", {}),
            ("exposed_comm_fraction", share["exposed_comm_time"], "comm_xgmi", INTRA),
        ):
            verdict, note = self.verdict(
                files, tmp_path, metric=metric, value=value, cls=cls, params=params
            )
            assert verdict is Verdict.REFUTED, note

    def test_idle_from_summed_durations(self, fsdp: RunFiles, tmp_path: Path) -> None:
        """Streams overlap under FSDP: the sum of durations hides the idle time."""
        scene = fsdp.scene(0)
        summed = 1 - sum(event.end - event.start for event in scene.gpu) / scene.width
        assert summed < scene.idle / scene.width - 0.05
        verdict, _ = self.verdict(
            fsdp, tmp_path, metric="gpu_idle_fraction", value=summed, cls="cpu_dispatch"
        )
        assert verdict is Verdict.REFUTED

    @pytest.mark.parametrize(("rank", "expected"), [(0, Verdict.VERIFIED), (1, Verdict.REFUTED)])
    def test_the_value_of_another_rank(
        self, fsdp: RunFiles, tmp_path: Path, rank: int, expected: Verdict
    ) -> None:
        value = fsdp.scene(0).idle / fsdp.scene(0).width
        verdict, _ = self.verdict(
            fsdp, tmp_path, metric="gpu_idle_fraction", value=value, cls="cpu_dispatch",
            ranks=[rank],
        )  # fmt: skip
        assert verdict is expected

    def test_the_rank_that_waits_is_not_the_straggler(self, fsdp: RunFiles, tmp_path: Path) -> None:
        waited = {rank: there.total for rank, there in waiting(fsdp.scenes()).items()}
        last = max(waited, key=lambda rank: waited[rank])
        for straggler, expected in ((1 - last, Verdict.VERIFIED), (last, Verdict.REFUTED)):
            verdict, note = self.verdict(
                fsdp, tmp_path, metric="collective_wait_fraction",
                value=waited[last] / fsdp.scene(last).width, cls="comm_xgmi",
                ranks=[last], params={**INTRA, "straggler": straggler},
            )  # fmt: skip
            assert verdict is expected, note


def test_communication_classes_of_a_recorded_run(fsdp: RunFiles, tmp_path: Path) -> None:
    """Two ranks, two GPUs visible: the FSDP run communicates inside its node."""
    summary = analyse(fsdp.inventory, Path(fsdp.inventory.root), tmp_path)
    for rank in summary.ranks:
        rank.visible_devices = 2
    claims = analyze_trace.analyze(summary, tmp_path, fsdp.inventory)
    assert BottleneckClass.COMM_XGMI in {claim.bottleneck_class for claim in claims.claims}
    write_record(tmp_path / "claims.json", claims)
    found = verify_trace.verify_with(tmp_path / "claims.json", fsdp)
    assert {c.verdict for c in found.claims} == {Verdict.VERIFIED}


def test_telemetry_claims_of_recorded_runs(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few samples make a verdict inconclusive; the two numbers agree all the same."""
    made: list[ClaimSet] = []
    for path in sorted((shared_data / "runs").glob("*/*_rep*")):
        inventory = take_inventory(path, "artifacts/hand-made")
        claims = analyze_telemetry.analyze(summarize(inventory), inventory)
        write_record(tmp_path / "claims.json", claims)
        found = verify_telemetry.verify(tmp_path / "claims.json", inventory)
        doubtful = [c.note for c in found.claims if c.verdict is not Verdict.VERIFIED]
        assert all("expected 5 or more" in note for note in doubtful)
        with monkeypatch.context() as patch:
            patch.setattr(verify_telemetry, "FEWEST_SAMPLES", 1)
            found = verify_telemetry.verify(tmp_path / "claims.json", inventory)
        assert {c.verdict for c in found.claims} <= {Verdict.VERIFIED}
        made.append(claims)
    metrics = {claim.metric for claims in made for claim in claims.claims}
    assert {"gpu_utilization_mean", "power_throttle_fraction"} <= metrics
