"""TraceLens as a second opinion: kept, compared, explained; and what its faults cost."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.schema.tracelens import TraceBackend
from perfproof.tracelens.compare import held_against
from perfproof.tracelens.find import PYTHON_VARIABLE
from perfproof.tracelens.run import run_step
from perfproof.traces.tables import analyse
from tests.claims.kineto import Kineto, inventory_of
from tests.tracelens.stand_in import COPY, EVERY, tracelens, unrelated


def two_ranks(folder: Path) -> None:
    for rank in range(2):
        trace = Kineto(rank=rank, world=2)
        trace.gpu("gemm", 100, 300, launch=20)
        trace.gpu("gemm", 400, 500, launch=30)
        trace.gpu("add", 900, 1000)
        for correlation in (1, 2):
            for end in "sf":
                arrow = {"ph": end, "cat": "ac2g", "name": "ac2g", "id": correlation, "ts": 100}
                trace.events.append({**arrow, "pid": 1, "tid": 7})
        trace.write(folder / f"trace_rank{rank}.json.gz")


def run(
    base: Path, backend: str = "tracelens", timeout_s: float = 60.0
) -> tuple[str, TraceBackend]:
    inventory = inventory_of(base / "run")
    out = base / "out"
    write_record(base / "inventory.json", inventory)
    write_record(out / "tables/trace_summary.json", analyse(inventory, base / "run", out))
    given = argparse.Namespace(
        inventory=base / "inventory.json", traces=out / "tables/trace_summary.json",
        backend=backend, timeout_s=timeout_s, jobs=2, out=out / "tracelens/backend.json",
    )  # fmt: skip
    line = run_step(given).line()
    return line, read_record(given.out, TraceBackend)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    two_ranks(tmp_path / "run")
    return tmp_path


def timeline(folder: Path, **times: float) -> Path:
    """TraceLens's file, as it is written."""
    names = ("computation_time", "exposed_comm_time", "exposed_memcpy_time", "busy_time",
             "idle_time", "total_time", "total_comm_time", "total_memcpy_time")  # fmt: skip
    rows = [f"{name},{times.get(name.removesuffix('_time'), 0.0)},0\n" for name in names]
    folder.mkdir(parents=True)
    (folder / "gpu_timeline.csv").write_text("type,time ms,percent\n" + "".join(rows))
    return folder


def test_linked_only_numbers_are_told_to_be_a_definition(
    ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = timeline(ranks / "recorded", computation=0.3, busy=0.3, idle=0.1, total=0.4)
    python = tracelens(ranks, COPY.format(source=str(recorded)) + EVERY)
    monkeypatch.setenv(PYTHON_VARIABLE, str(python))
    stale = ranks / "out/tracelens/rank-7/gpu_timeline.csv"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    line, record = run(ranks)
    assert line.startswith("STATUS=ok; reason=tracelens (asked for: ")
    assert [rank.agreement for rank in record.ranks] == ["definition", "definition"]
    assert "1 of 3 have no recorded launch at all" in record.ranks[0].explanation
    rows = {row.name: row for row in record.ranks[0].timeline}
    assert (rows["busy_time"].all_ms, rows["busy_time"].linked_ms) == (0.4, 0.3)
    assert rows["busy_time"].tracelens_ms == 0.3
    assert record.ranks[1].tables["gpu_timeline"].file == "tracelens/rank-1/gpu_timeline.csv"
    kept = ranks / "out/tracelens/rank-1/gpu_timeline.csv"
    assert kept.read_bytes() == (recorded / "gpu_timeline.csv").read_bytes()
    assert not stale.exists()
    assert set(record.collectives) == {"nccl_summary_long", "nccl_summary_implicit_sync"}
    assert record.collectives_note == "Without rows: nccl_summary_long."
    assert str(ranks) not in record.model_dump_json()


def test_auto_without_it_says_so_and_changes_nothing(
    ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, str(unrelated(ranks)))
    line, record = run(ranks, "auto")
    assert line.startswith("STATUS=ok; reason=builtin (auto: 'tracelens' 0.7.0 in ")
    assert (record.used, record.ranks, record.problems) == ("builtin", [], [])
    with pytest.raises(InputError, match="another project"):
        run(ranks, "tracelens")


FAULTS = {
    "fails": ("def single():\n    arguments()\n    raise ValueError('No GPU events found')\n",
              "ended with exit code 1: ValueError: No GPU events found"),
    "hangs": ("def single():\n    time.sleep(60)\n", "gave no report within 2 s"),
    "writes nothing": ("def single():\n    arguments()\n", "wrote no gpu_timeline.csv"),
    "other columns": (
        "def single():\n    given = arguments()\n"
        "    open(given.output_csvs_dir + '/gpu_timeline.csv', 'w').write('a,b\\n1,2\\n')\n",
        "no timeline; expected columns 'type' and 'time ms'",
    ),
    "empty": (
        "def single():\n    given = arguments()\n"
        "    open(given.output_csvs_dir + '/gpu_timeline.csv', 'w').write('\\n')\n",
        "wrote an empty timeline",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_its_costs_its_numbers_only(
    ranks: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, str(tracelens(ranks, code + EVERY)))
    line, record = run(ranks, "auto", timeout_s=2.0)
    assert line.startswith("STATUS=partial; reason=trace_rank0.json.gz: ")
    assert {rank.agreement for rank in record.ranks} == {"none"}
    assert says in record.problems[0].what
    assert str(ranks) not in record.model_dump_json()
    assert record.ranks[0].timeline[0].all_ms > 0


def test_ranks_that_fail_leave_the_others(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = timeline(ranks / "recorded", computation=0.4, busy=0.4, idle=0.5, total=0.9)
    code = COPY.format(source=str(recorded)) + (
        "    import gzip, json\n"
        "    if json.load(gzip.open(given.profile_json_path))['distributedInfo']['rank']:\n"
        "        sys.exit('refused')\n"
    )
    monkeypatch.setenv(PYTHON_VARIABLE, str(tracelens(ranks, code)))
    _, record = run(ranks)
    assert [rank.agreement for rank in record.ranks] == ["same", "none"]
    assert "refused" in record.ranks[1].explanation
    where = [problem.where for problem in record.problems]
    assert where == ["trace_rank1.json.gz", "traces of all ranks"]


def test_a_trace_without_gpu_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kineto(world=1).event("cpu_op", "aten::mm", 0, 10).write(tmp_path / "run/trace_rank0.json.gz")
    monkeypatch.setenv(PYTHON_VARIABLE, str(tracelens(tmp_path, "def single():\n    sys.exit(1)")))
    line, record = run(tmp_path)
    assert line.startswith("STATUS=ok")
    assert record.ranks[0].explanation.startswith("No GPU events")


def test_what_explains_a_difference(ranks: Path) -> None:
    summary = analyse(inventory_of(ranks / "run"), ranks / "run", ranks / "out")
    ours = {"computation_time": 8.0, "busy_time": 9.0, "idle_time": 1.0, "total_time": 10.0,
            "total_comm_time": 3.0}  # fmt: skip
    linked = {**ours, "computation_time": 5.0, "busy_time": 6.0, "idle_time": 4.0}

    def agreement(theirs: dict[str, float]) -> tuple[str, str]:
        found = held_against(summary.ranks[0], ours, linked, theirs, {})
        return found.agreement, found.explanation

    assert agreement(ours)[0] == "same"
    assert agreement(linked)[0] == "definition"
    kind, text = agreement({**ours, "total_comm_time": 1.0})
    assert kind == "classes"
    assert "communication differs by -2.000 ms" in text
    assert agreement({**linked, "busy_time": 7.0})[0] == "other"
    assert agreement({})[0] == "other"


def test_recorded_reports_of_tracelens(
    tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own files on a trace with 968 events that it does not count, and on one without."""
    for number, (name, folder) in enumerate(
        [("mi300_resnet_act_checkpoint", "tracelens"), ("a100_ddp_rank0of2_nccl_meta", "hta")]
    ):
        base = tmp_path / name
        (base / "run").mkdir(parents=True)
        trace = base / "run" / "trace_rank0.json.gz"
        trace.symlink_to(shared_data / "traces" / folder / f"{name}.json.gz")
        source = shared_data / "tracelens-output" / name
        python = tracelens(base, COPY.format(source=str(source)))
        monkeypatch.setenv(PYTHON_VARIABLE, str(python))
        _, record = run(base)
        rank = record.ranks[0]
        assert rank.agreement == ("definition", "same")[number]
        assert set(rank.tables) == {path.stem for path in source.glob("*.csv")}
        if number == 0:
            assert "968 of 3653 have no recorded launch" in rank.explanation
            rows = {row.name: row for row in rank.timeline}
            assert rows["busy_time"].tracelens_ms == pytest.approx(56.1009, abs=1e-3)
            assert rows["busy_time"].linked_ms == pytest.approx(56.1009, abs=1e-3)
            assert rows["busy_time"].all_ms == pytest.approx(84.0, abs=1.0)
        json.loads(record.model_dump_json())
