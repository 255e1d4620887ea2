from __future__ import annotations

import argparse
import csv
import subprocess
import sys

import pytest

from perfproof.core.files import digest_file, read_record
from perfproof.schema.traces import TraceSummary
from perfproof.traces import rank_work
from perfproof.traces.tables import SUMMARY, run_step
from tests.traces.builder import TraceBuilder, ranked, ten_kernels, training
from tests.traces.make import write_inventory

RANK_TABLES = {
    "coll_analysis",
    "cpu_ops",
    "dataloader",
    "gpu_timeline",
    "host_overlap",
    "idle",
    "kernel_groups",
    "kernel_summary",
    "launch_stats",
    "linked_timeline",
    "memcpy",
    "ops_summary",
    "ops_summary_by_category",
    "roofline",
    "runtime_calls",
    "short_kernel_histogram",
    "short_kernels_summary",
    "steps",
    "top_kernels",
    "window_timeline",
}


def run(folder, out, paths, jobs=1):
    """The step in this process: its status line and its summary."""
    inventory = write_inventory(folder, paths)
    status = run_step(argparse.Namespace(inventory=inventory, out_dir=out, jobs=jobs))
    assert status.exit_code == 0
    return status.line(), read_record(out / SUMMARY, TraceSummary)


def command_line(folder, out, paths):
    """The step as a command: exit code and last line."""
    inventory = write_inventory(folder, paths)
    command = [sys.executable, "-m", "perfproof.traces.tables"]
    command += ["--inventory", str(inventory), "--out-dir", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1]


def rank_trace(rank, world=2):
    meta = {"distributedInfo": {"rank": rank, "world_size": world}}
    trace = training(2, 3, meta)
    trace.meta["deviceProperties"] = [{"id": 0, "name": "GPU A"}]
    return trace


@pytest.fixture
def two_ranks(tmp_path):
    for rank in range(2):
        rank_trace(rank).write(tmp_path / f"rank{rank}.json.gz")
    return tmp_path


def test_all_tables_of_two_ranks(two_ranks, tmp_path):
    out = tmp_path / "out"
    last, summary = run(two_ranks, out, ["rank0.json.gz", "rank1.json.gz"])
    assert last == "STATUS=ok; reason=tables of 2 ranks"
    assert [rank.rank for rank in summary.ranks] == [0, 1]
    assert set(summary.cross_rank) == {"collective_skew", "collective_wait"}
    first = summary.ranks[0]
    assert set(first.tables) == RANK_TABLES
    assert (first.steps, first.window_kind, first.device_name) == ([0, 1], "steps", "GPU A")
    for table in [*first.tables.values(), *summary.cross_rank.values()]:
        path = out / table.file
        assert digest_file(path) == table.blake3
        with path.open(encoding="utf-8", newline="") as stream:
            assert len(list(csv.reader(stream))) == table.rows + 1


def test_the_same_bytes_every_time_and_nothing_of_this_machine(two_ranks, tmp_path):
    outs = [tmp_path / "a", tmp_path / "b"]
    for out in outs:
        run(two_ranks, out, ["rank0.json.gz", "rank1.json.gz"])
    files = [sorted(p.relative_to(out) for p in out.rglob("*") if p.is_file()) for out in outs]
    assert files[0] == files[1]
    for name in files[0]:
        data = (outs[0] / name).read_bytes()
        assert data == (outs[1] / name).read_bytes()
        assert str(tmp_path).encode() not in data


def test_processes_give_the_same_bytes_and_problems(two_ranks, tmp_path, monkeypatch):
    monkeypatch.setattr(rank_work, "BYTES_A_PROCESS", 1)
    (two_ranks / "rank2.json").write_bytes(b"no trace")
    rank_trace(1).write(two_ranks / "again.json")
    names = ["again.json", "rank0.json.gz", "rank1.json.gz", "rank2.json"]
    outs = [tmp_path / "serial", tmp_path / "parallel"]
    found = [run(two_ranks, out, names, jobs) for out, jobs in zip(outs, (1, 2), strict=True)]
    assert found[0] == found[1]
    assert [problem.where for problem in found[0][1].problems] == ["rank1.json.gz", "rank2.json"]
    for path in sorted(outs[0].rglob("*.*")):
        assert (outs[1] / path.relative_to(outs[0])).read_bytes() == path.read_bytes()


def test_a_broken_rank_costs_only_itself(two_ranks, tmp_path):
    (two_ranks / "rank1.json.gz").write_bytes(b"no trace")
    last, summary = run(two_ranks, tmp_path / "out", ["rank0.json.gz", "rank1.json.gz"])
    assert last.startswith("STATUS=partial; reason=rank1.json.gz: no `traceEvents`; expected")
    assert [rank.rank for rank in summary.ranks] == [0]
    assert [problem.where for problem in summary.problems] == ["rank1.json.gz"]
    codes = {finding.code: finding for finding in summary.ranks[0].findings}
    assert codes["missing_ranks"].value == 1


def test_all_broken_still_writes_the_summary(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    last, summary = run(tmp_path, tmp_path / "out", ["a.json", "missing.json"])
    assert (summary.ranks, len(summary.problems)) == ([], 2)
    assert last.startswith("STATUS=partial;")


def test_no_trace(tmp_path):
    last, summary = run(tmp_path, tmp_path / "out", [])
    assert last == "STATUS=partial; reason=no trace"
    assert (summary.ranks, summary.problems) == ([], [])


def test_a_cut_trace_is_used_and_said(two_ranks, tmp_path):
    text = rank_trace(0).text()
    (tmp_path / "rank0.json").write_text(text[: len(text) // 2])
    last, summary = run(tmp_path, tmp_path / "out", ["rank0.json"])
    assert last.startswith("STATUS=partial; reason=rank0.json: file cut short")
    assert summary.ranks[0].gpu_events > 0


def test_cpu_only(tmp_path):
    trace = TraceBuilder()
    trace.step(3, 0, 100)
    trace.op("aten::add", 10, 5)
    trace.write(tmp_path / "trace.json")
    last, summary = run(tmp_path, tmp_path / "out", ["trace.json"])
    assert last == "STATUS=ok; reason=tables of 1 ranks"
    rank = summary.ranks[0]
    assert set(rank.tables) == {"steps", "dataloader", "cpu_ops", "host_overlap"}
    assert rank.window_kind == "cpu_span"
    assert rank.reasons["device_name"] == "no_device"
    codes = {finding.code for finding in rank.findings}
    assert {"no_device_timeline", "rank_not_recorded"} <= codes


def test_a_trace_without_events(tmp_path):
    TraceBuilder().write(tmp_path / "trace.json")
    _, summary = run(tmp_path, tmp_path / "out", ["trace.json"])
    rank = summary.ranks[0]
    assert (rank.window_kind, rank.window_duration_ns) == ("empty", None)


def test_ranks_that_contradict_or_repeat_are_problems(tmp_path):
    ranked(1, 2).write(tmp_path / "rank0.json")
    for name in ("b.json", "c.json"):
        trace = ten_kernels(distributedInfo={"rank": 1, "world_size": 2})
        trace.write(tmp_path / name)
    _, summary = run(tmp_path, tmp_path / "out", ["rank0.json", "b.json", "c.json"])
    assert [rank.file for rank in summary.ranks] == ["b.json"]
    problems = {problem.where: problem.what for problem in summary.problems}
    assert "distributedInfo says rank 1, the file name says rank 0" in problems["rank0.json"]
    assert "rank 1, as in b.json" in problems["c.json"]


def test_a_trace_that_changed_since_the_inventory_is_not_used(two_ranks, tmp_path):
    inventory = write_inventory(two_ranks, ["rank0.json.gz", "rank1.json.gz"])
    rank_trace(1).write(two_ranks / "other.json")
    (two_ranks / "other.json").replace(two_ranks / "rank1.json.gz")
    out = tmp_path / "out"
    status = run_step(argparse.Namespace(inventory=inventory, out_dir=out, jobs=1))
    changed = "rank1.json.gz: changed since the inventory was taken"
    assert status.line().startswith(f"STATUS=partial; reason={changed}")
    assert [rank.rank for rank in read_record(out / SUMMARY, TraceSummary).ranks] == [0]


def test_an_unexpected_error_costs_only_its_rank_and_is_shown(two_ranks, tmp_path, capsys):
    out = tmp_path / "out"
    (out / "tables").mkdir(parents=True)
    (out / "tables" / "rank-0").write_text("a file where a folder has to be")
    last, summary = run(two_ranks, out, ["rank0.json.gz", "rank1.json.gz"])
    assert last.startswith("STATUS=partial; reason=rank0.json.gz: not analysed: ")
    assert [rank.rank for rank in summary.ranks] == [1]
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("world", "missing"), [(900_000, 899_999), (1, None)])
def test_missing_ranks_are_counted(tmp_path, world, missing):
    rank_trace(0, world).write(tmp_path / "rank0.json")
    _, summary = run(tmp_path, tmp_path / "out", ["rank0.json"])
    values = [f.value for f in summary.ranks[0].findings if f.code == "missing_ranks"]
    assert values == ([] if missing is None else [missing])


def test_a_name_of_a_megabyte_can_be_read_back(tmp_path):
    trace = ten_kernels()
    trace.kernel("x" * 1_000_000, 1300, 20)
    trace.write(tmp_path / "trace.json")
    _, summary = run(tmp_path, tmp_path / "out", ["trace.json"])
    for table in summary.ranks[0].tables.values():
        with (tmp_path / "out" / table.file).open(encoding="utf-8", newline="") as stream:
            assert len(list(csv.reader(stream))) == table.rows + 1


def test_the_command_line(two_ranks, tmp_path):
    done = command_line(two_ranks, tmp_path / "out", ["rank0.json.gz", "rank1.json.gz"])
    assert done == (0, "STATUS=ok; reason=tables of 2 ranks")


def test_a_bad_inventory_is_a_failed_step(tmp_path):
    missing = str(tmp_path / "none.json")
    command = [sys.executable, "-m", "perfproof.traces.tables", "--inventory", missing]
    command += ["--out-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith(f"STATUS=fail; reason={missing}: no such file")
