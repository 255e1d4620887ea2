"""The trace analyst, from hand-made traces through the real tables to verified claims."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfproof.core.files import write_record
from perfproof.schema.base import Reason
from perfproof.schema.claims import BottleneckClass, Claim, ClaimSet, Verdict
from perfproof.schema.levers import Lever, LeverCatalog
from perfproof.schema.traces import Finding, TraceSummary
from perfproof.traces.tables import analyse
from tests.claims.kineto import Kineto, inventory_of
from tests.claims.runs import claims_of, make_foms, make_manifest, through

GEMM = "nvjet_tst_128x128_NNT"
ADD = "void at::native::vectorized_elementwise_kernel<4, add>"
HTOD = "Memcpy HtoD (Pageable -> Device)"


def steps(trace: Kineto, fill: Callable[[Kineto, float], object]) -> Kineto:
    """Three steps of 1000 µs; `fill` adds what happens after each start."""
    for number in range(3):
        trace.step(number + 1, 1000 * number, 1000 * (number + 1))
        fill(trace, 1000 * number)
    return trace


def dispatch_bound(trace: Kineto, at: float) -> None:
    """Ten kernels of 5 µs, each launched 95 µs after the one before ended."""
    for number in range(10):
        trace.gpu(ADD, at + 100 * number + 4, at + 100 * number + 9, launch=at + 100 * number)


def loader_bound(trace: Kineto, at: float) -> None:
    trace.event("user_annotation", "enumerate(DataLoader)#_Iter.__next__", at, at + 700)
    trace.gpu(GEMM, at + 705, at + 1000, launch=at + 700)


def all_reduce(trace: Kineto, at: float) -> None:
    trace.gpu(GEMM, at + 10, at + 400, launch=at)
    trace.collective(at + 400, at + 990, at + 1, [0, 1])


SCENES: dict[BottleneckClass, Callable[[Kineto, float], object]] = {
    BottleneckClass.GPU_COMPUTE: lambda t, at: t.gpu(GEMM, at + 5, at + 990, launch=at),
    BottleneckClass.GPU_MEMORY_HBM: lambda t, at: t.gpu(ADD, at + 5, at + 990, launch=at),
    BottleneckClass.CPU_DISPATCH: dispatch_bound,
    BottleneckClass.COMM_XGMI: all_reduce,
    BottleneckClass.COMM_SCALEOUT: all_reduce,
    BottleneckClass.DATALOADER: loader_bound,
    BottleneckClass.HOST_IO: lambda t, at: t.gpu(
        HTOD, at + 5, at + 990, launch=at, cat="gpu_memcpy"
    ),
    BottleneckClass.HOST_CPU: lambda t, at: t.event("cpu_op", "aten::mm", at, at + 900),
}


@pytest.mark.parametrize("bottleneck", list(BottleneckClass))
def test_every_class_is_found_first_and_verified(
    tmp_path: Path, bottleneck: BottleneckClass
) -> None:
    world = 2 if bottleneck in (BottleneckClass.COMM_XGMI, BottleneckClass.COMM_SCALEOUT) else 1
    trace = steps(Kineto(rank=0, world=world), SCENES[bottleneck])
    trace.write(tmp_path / "run" / "trace_rank0.json.gz")
    nodes = 2 if bottleneck is BottleneckClass.COMM_SCALEOUT else 1
    write_record(tmp_path / "run" / "manifest.json", make_manifest(nodes, world))
    claims, verdicts = through(tmp_path)
    assert claims.problems == []
    assert bottleneck in {
        claim.bottleneck_class
        for claim in claims.claims
        if claim.share_of_step == claims.claims[0].share_of_step
    }
    assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}


def by_metric(claims: ClaimSet, metric: str) -> Claim:
    return next(claim for claim in claims.claims if claim.metric == metric)


class TestRanks:
    @staticmethod
    def write(root: Path) -> None:
        """Rank 1 works 590 µs longer a step; rank 0 waits for it in the collective."""
        fast, slow = Kineto(0, 2), Kineto(1, 2)
        for number in range(3):
            at = 1000 * number
            for trace, start in ((fast, 300), (slow, 890)):
                trace.step(number + 1, at, at + 1000)
                trace.gpu(GEMM, at + 10, at + start, launch=at)
                trace.collective(at + start, at + 990, at + 1, [0, 1])
        fast.write(root / "trace_rank0.json.gz")
        slow.write(root / "trace_rank1.json.gz")
        write_record(root / "manifest.json", make_manifest(1, 2))

    def test_the_straggler_is_named_not_the_rank_that_waits(self, tmp_path: Path) -> None:
        self.write(tmp_path / "run")
        claims, verdicts = through(tmp_path)
        wait = by_metric(claims, "collective_wait_fraction")
        assert wait.value == pytest.approx(0.59)
        assert (wait.ranks, wait.params["straggler"]) == ([0], 1)
        assert "the delay comes from rank 1" in wait.statement
        assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}

    def test_the_rank_with_the_largest_value_is_claimed(self, tmp_path: Path) -> None:
        self.write(tmp_path / "run")
        claims, _ = through(tmp_path)
        gemm = by_metric(claims, "kernel_group_fraction")
        assert gemm.ranks == [1]
        assert "the highest of 2 ranks" in gemm.statement

    def test_a_rank_with_a_bad_finding_supports_no_claim(self, tmp_path: Path) -> None:
        self.write(tmp_path / "run")
        inventory = inventory_of(tmp_path / "run")
        summary = analyse(inventory, Path(inventory.root), tmp_path)
        bad = Finding(code="stray", severity="bad", value=1, message="one stray event")
        summary.ranks[1].findings.append(bad)
        claims = claims_of(tmp_path, inventory, summary=summary)
        assert {rank for claim in claims.claims for rank in claim.ranks} == {0}
        assert "collective_wait_fraction" not in {claim.metric for claim in claims.claims}
        (problem,) = claims.problems
        assert (problem.where, problem.what) == (
            "trace_rank1.json.gz",
            "no claims made: stray: one stray event",
        )


class TestTopology:
    @staticmethod
    def claims(tmp_path: Path, world: int, visible: int) -> ClaimSet:
        trace = steps(Kineto(0, world), all_reduce)
        trace.write(tmp_path / "run" / "trace_rank0.json.gz")
        inventory = inventory_of(tmp_path / "run")
        summary = analyse(inventory, Path(inventory.root), tmp_path)
        summary.ranks[0].visible_devices = visible
        return claims_of(tmp_path, inventory, summary=summary)

    @pytest.mark.parametrize(("world", "visible"), [(2, 8), (8, 8), (16, 8)])
    def test_what_a_rank_sees_decides_without_a_manifest(
        self, tmp_path: Path, world: int, visible: int
    ) -> None:
        """The group [0, 1] fits one node in all of them."""
        claim = by_metric(self.claims(tmp_path, world, visible), "exposed_comm_fraction")
        assert claim.bottleneck_class is BottleneckClass.COMM_XGMI
        assert claim.params["decided_by"].startswith("trace: world size")

    def test_unknown_topology_makes_no_claim_and_says_so(self, tmp_path: Path) -> None:
        claims = self.claims(tmp_path, world=2, visible=1)
        assert "exposed_comm_fraction" not in {claim.metric for claim in claims.claims}
        assert "no claim on communication" in claims.problems[0].what


class TestProfiling:
    """A dispatch-bound step is slower under the profiler: busy shares are understated."""

    def statement(self, tmp_path: Path, step_time_s: float | None) -> str:
        trace = steps(Kineto(), dispatch_bound)
        trace.write(tmp_path / "run" / "trace_rank0.json.gz")
        claims, verdicts = through(tmp_path, make_foms(step_time_s))
        assert {c.verdict for c in verdicts.claims} == {Verdict.VERIFIED}
        return by_metric(claims, "gpu_idle_fraction").statement

    def test_the_statement_says_how_much(self, tmp_path: Path) -> None:
        said = self.statement(tmp_path, 0.0005)
        assert "95.0 % of the recorded window" in said
        assert "stretched the step 2.00 times (1.0 ms traced, 0.5 ms without)" in said
        assert "would idle 90.0 % without the profiler" in said

    @pytest.mark.parametrize("step_time_s", [None, 0.00098])
    def test_nothing_where_unknown_or_small(
        self, tmp_path: Path, step_time_s: float | None
    ) -> None:
        assert "profil" not in self.statement(tmp_path, step_time_s).lower()


def test_levers_come_from_the_catalog_by_class(tmp_path: Path) -> None:
    catalog = LeverCatalog(
        model="m",
        levers=[
            Lever(id="graphs", description="x", classes=["cpu_dispatch"]),
            Lever(id="compile", description="x", classes=["gpu_memory_hbm", "cpu_dispatch"]),
            Lever(id="trace-more", description="x", classes=["cpu_dispatch"], kind="diagnostic"),
            Lever(id="bf16", description="x", classes=["gpu_compute"]),
        ],
    )
    steps(Kineto(), dispatch_bound).write(tmp_path / "run" / "trace_rank0.json.gz")
    claims, _ = through(tmp_path, catalog=catalog)
    assert by_metric(claims, "gpu_idle_fraction").levers == ["compile", "graphs"]
    assert all(not claim.levers for claim in through(tmp_path)[0].claims)


def test_explanations_need_what_they_explain(tmp_path: Path) -> None:
    """A thousand short kernels back to back keep the GPU busy: their number is no finding."""

    def fill(trace: Kineto, at: float) -> None:
        for number in range(200):
            trace.gpu(ADD, at + 5 * number, at + 5 * number + 5, launch=at)

    steps(Kineto(), fill).write(tmp_path / "run" / "trace_rank0.json.gz")
    claims, _ = through(tmp_path)
    assert {claim.metric for claim in claims.claims} == {
        "kernel_group_fraction",
        "top_kernel_fraction",
    }


def test_a_cpu_only_trace_says_nothing_of_a_gpu(tmp_path: Path) -> None:
    def fill(trace: Kineto, at: float) -> None:
        trace.event("cpu_op", "aten::linear", at, at + 600)
        trace.event("cpu_op", "aten::addmm", at + 50, at + 500)
        trace.event("user_annotation", "enumerate(DataLoader)#x", at + 600, at + 800)

    steps(Kineto(devices=0), fill).write(tmp_path / "run" / "trace_rank0.json.gz")
    claims, _ = through(tmp_path)
    assert [(claim.metric, round(claim.value, 3)) for claim in claims.claims] == [
        ("cpu_op_self_fraction", 0.45),
        ("dataloader_fraction", 0.2),
        ("cpu_op_self_fraction", 0.15),
    ]
    assert claims.problems == []


class TestDamage:
    """One bad table costs its rank; the run goes on."""

    @staticmethod
    def summary(tmp_path: Path) -> TraceSummary:
        for rank in (0, 1):
            trace = steps(Kineto(rank, 2), dispatch_bound)
            trace.write(tmp_path / "run" / f"trace_rank{rank}.json.gz")
        inventory = inventory_of(tmp_path / "run")
        return analyse(inventory, Path(inventory.root), tmp_path)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (None, "tables/rank-1/idle.csv: no such file"),
            ("cause,count\n", "tables/rank-1/idle.csv: no row cause=host_late"),
            ("cause,outside_loader_fraction_of_window\nhost_late,lots\n", "holds 'lots'"),
        ],
    )
    def test_a_damaged_table(self, tmp_path: Path, content: str | None, says: str) -> None:
        summary = self.summary(tmp_path)
        table = tmp_path / "tables" / "rank-1" / "idle.csv"
        table.unlink()
        if content is not None:
            table.write_text(content)
        claims = claims_of(tmp_path, inventory_of(tmp_path / "run"), summary=summary)
        assert {rank for claim in claims.claims for rank in claim.ranks} == {0}
        (problem,) = claims.problems
        assert says in problem.what
        assert str(tmp_path) not in problem.what

    def test_a_table_that_was_never_made(self, tmp_path: Path) -> None:
        summary = self.summary(tmp_path)
        del summary.ranks[0].tables["launch_stats"]
        claims = claims_of(tmp_path, inventory_of(tmp_path / "run"), summary=summary)
        assert "no table 'launch_stats'" in claims.problems[0].what

    def test_an_empty_window(self, tmp_path: Path) -> None:
        Kineto().write(tmp_path / "run" / "trace_rank0.json.gz")
        claims, _ = through(tmp_path)
        assert claims.claims == []
        assert "no window" in claims.problems[0].what


class TestCommandLine:
    def run(self, tmp_path: Path, *more: str | Path) -> tuple[str, bytes]:
        steps(Kineto(), dispatch_bound).write(tmp_path / "run" / "trace_rank0.json.gz")
        inventory = inventory_of(tmp_path / "run")
        write_record(tmp_path / "inventory.json", inventory)
        summary = analyse(inventory, Path(inventory.root), tmp_path)
        write_record(tmp_path / "tables" / "trace_summary.json", summary)
        out = tmp_path / "claims" / "trace.json"
        done = subprocess.run(
            [sys.executable, "-m", "perfproof.claims.analyze_trace",
             "--traces", tmp_path / "tables" / "trace_summary.json",
             "--inventory", tmp_path / "inventory.json", *more, "--out", out],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.splitlines()[-1], out.read_bytes() if out.is_file() else b""

    def test_a_catalog_may_be_absent(self, tmp_path: Path) -> None:
        write_record(tmp_path / "foms.json", make_foms(0.0005))
        status, first = self.run(tmp_path, "--foms", tmp_path / "foms.json", "--levers")
        assert status.startswith("STATUS=ok; reason=")
        claims = json.loads(first)["claims"]
        assert [claim["id"] for claim in claims] == [
            f"TR-{n:03d}" for n in range(1, len(claims) + 1)
        ]
        shares = [claim["share_of_step"] for claim in claims if claim["share_of_step"] is not None]
        assert shares == sorted(shares, reverse=True)
        assert str(tmp_path) not in first.decode()

    def test_a_catalog_that_does_not_exist_fails_in_one_line(self, tmp_path: Path) -> None:
        status, _ = self.run(tmp_path, "--levers", tmp_path / "none.yaml")
        assert status.startswith("STATUS=fail; reason=")
        assert "none.yaml: no such file" in status


def test_nulls_carry_reasons(tmp_path: Path) -> None:
    steps(Kineto(), dispatch_bound).write(tmp_path / "run" / "trace_rank0.json.gz")
    claims, _ = through(tmp_path)
    short = by_metric(claims, "short_kernel_count_fraction")
    assert short.share_of_step is None
    assert short.reasons["share_of_step"] is Reason.NO_SHARE
