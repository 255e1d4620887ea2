from __future__ import annotations

import argparse
import csv

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import digest_file, read_record
from perfproof.schema.traces import TraceComparison
from perfproof.traces.compare import PAGE, RECORD, run_step
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.test_sides import stepped


def compared(out, a, b):
    """The step in this process: its status line and its record."""
    status = run_step(argparse.Namespace(a=[a], versus=[b], out_dir=out))
    return status.line(), read_record(out / RECORD, TraceComparison)


def totals(found):
    return {total.name: total for total in found.totals}


def test_per_step_with_different_numbers_of_steps(tmp_path):
    a = stepped([20, 20]).write(tmp_path / "a.json")
    b = stepped([10, 10, 10, 10]).write(tmp_path / "b.json")
    line, found = compared(tmp_path / "out", a, b)
    assert line == "STATUS=ok; reason=100 to 100 us per step"
    assert (found.basis, found.a.steps, found.b.steps) == ("per step", [[0, 1]], [[0, 1, 2, 3]])
    assert totals(found)["busy_us"].difference == -10
    assert totals(found)["busy_us"].share_of_a == -0.1
    assert totals(found)["gpu_events"].share_of_a is None
    (row,) = found.largest["operators"]
    assert (row.key, row.where, row.difference_us) == ({"operator": "aten::mm"}, "both", -10)


def test_only_one_side_and_the_order(tmp_path):
    one, other = stepped([20]), stepped([20])
    one.kernel("triton_poi_fused_add_0", 1040, 5, launched=1030)
    one.kernel("only_here", 1050, 9, launched=1031)
    other.kernel("triton_poi_fused_add_3", 1040, 6, launched=1030)
    other.kernel("only_there", 1050, 12, launched=1031)
    a, b = one.write(tmp_path / "a.json"), other.write(tmp_path / "b.json")
    _, found = compared(tmp_path / "out", a, b)
    rows = [(r.key["kernel"], r.where, r.difference_us) for r in found.largest["kernels"]]
    assert rows == [
        ("only_there", "only_b", 12),
        ("only_here", "only_a", -9),
        ("triton_poi_fused_add", "both", 1),
        ("gemm_kernel", "both", 0),
    ]


def test_without_steps_on_one_side_nothing_is_per_step(tmp_path):
    a = stepped([20, 30]).write(tmp_path / "a.json")
    b = ten_kernels().write(tmp_path / "b.json")
    _, found = compared(tmp_path / "out", a, b)
    assert found.basis == "per trace"
    assert found.basis_reason == "no profiled step launched GPU work in b.json (side b)"
    assert totals(found)["busy_us"].a == 50
    assert totals(found)["time_us"].b == 290


def test_a_set_is_the_mean_of_its_gpus(tmp_path):
    stepped([20]).write(tmp_path / "set" / "rank0.json")
    stepped([40]).write(tmp_path / "set" / "rank1.json")
    a = stepped([20]).write(tmp_path / "a.json")
    _, found = compared(tmp_path / "out", a, tmp_path / "set")
    assert found.b.files == ["rank0.json", "rank1.json"]
    assert totals(found)["busy_us"].b == 30


def test_a_bad_trace_costs_only_itself_unless_it_is_the_last(tmp_path):
    stepped([20]).write(tmp_path / "set" / "rank0.json")
    (tmp_path / "set" / "rank1.json").write_text("{}")
    a = stepped([20]).write(tmp_path / "a.json")
    line, found = compared(tmp_path / "out", a, tmp_path / "set")
    assert line.startswith("STATUS=partial; reason=rank1.json: side b: no `traceEvents`")
    assert len(found.problems) == 1
    cpu = TraceBuilder()
    cpu.op("aten::add", 0, 1)
    with pytest.raises(InputError, match="no GPU event"):
        compared(tmp_path / "out", a, cpu.write(tmp_path / "cpu.json"))


def test_two_devices_in_one_file_are_refused(tmp_path):
    trace = stepped([20])
    trace.gpu("k", 1000, 5, device=1)
    a = stepped([20]).write(tmp_path / "a.json")
    with pytest.raises(InputError, match="GPU events of devices 0, 1"):
        compared(tmp_path / "out", a, trace.write(tmp_path / "b.json"))


def test_files_agree_with_the_record(tmp_path):
    a = stepped([20, 30]).write(tmp_path / "a.json")
    b = stepped([25]).write(tmp_path / "b.json")
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        _, found = compared(out, a, b)
        for level, table in found.tables.items():
            assert digest_file(out / table.file) == table.blake3
            with (out / table.file).open(encoding="utf-8", newline="") as stream:
                assert len(list(csv.DictReader(stream))) == table.rows, level
    for name in (RECORD, PAGE):
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes()
        assert str(tmp_path) not in (outs[0] / name).read_text()
    assert "| busy_us | 25.0 | 25.0 | +0.0 | +0.00% |" in (outs[0] / PAGE).read_text()


def test_a_recorded_trace_against_itself_is_all_zero(shared_data, tmp_path):
    path = shared_data / "traces" / "hta" / "mi250_minitoy_train.json.gz"
    _, found = compared(tmp_path / "out", path, path)
    assert found.basis == "per step"
    assert all(total.difference == 0 for total in found.totals)
    rows = [row for level in found.largest.values() for row in level]
    assert rows
    assert all(row.where == "both" and row.difference_us == 0 for row in rows)


def test_recorded_loader_workers_gain_idle_time(shared_data, tmp_path):
    """The pair differs in `num_workers`: the same kernels, less idle time a step."""
    folder = shared_data / "traces" / "kineto"
    a, b = (folder / f"v100_resnet50_num_workers_{n}_old_schema.pt.trace.json.gz" for n in (0, 4))
    _, found = compared(tmp_path / "out", a, b)
    assert found.basis == "per step"
    changes = totals(found)
    assert changes["idle_us"].difference == pytest.approx(-15_888, abs=1)
    assert changes["time_us"].difference == pytest.approx(-13_843.333, abs=0.01)
    norm = {"group": "normalization", "phase": "backward"}
    row = next(row for row in found.largest["categories"] if row.key == norm)
    assert (row.a_count, row.b_count) == (53, 53)
    covered = sum(row.a_us for row in found.largest["categories"])
    assert covered == pytest.approx(changes["busy_us"].a, rel=0.001)
