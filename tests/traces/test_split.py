from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.traces.columns import read_trace
from perfproof.traces.context import make_context
from perfproof.traces.identity import check_single
from perfproof.traces.rank_work import make_tables
from perfproof.traces.raw import read_raw, write_raw
from perfproof.traces.split import parse_ranks, run_step, split_file
from tests.traces.builder import TraceBuilder, ranked, training
from tests.traces.make import context_of, records, trace_of
from tests.traces.test_cut import OF_STEPS

PAIRS = ("hydragnn/egnn_fp64_b40_h1000_ddp2_trace", "orbit2/117m_bf16_b8_fsdp2_trace")


def merged(paths, out):
    """What joins two files: the events of both in one list."""
    one, other = (read_raw(path) for path in paths)
    write_raw(out, one.members, [*one.texts, *other.texts])
    return out


def tables(path):
    return make_tables(make_context(read_trace(path, "t"), 0))


def rank(number: int, shift: float, calls_before: int = 0) -> TraceBuilder:
    """Ranks count their calls alike: some correlations are the same, at other times."""
    trace = ranked(number, 2)
    trace._correlation = calls_before
    trace.step(0, shift, 1000)
    for index in range(20):
        start = shift + 40 * index
        trace.op("aten::mm", start, 20)
        trace.kernel(f"gemm_{number}", start + 30, 5, launched=start + 2)
    return trace


def test_merged_ranks_come_apart(tmp_path):
    sources = [rank(n, 1000 + 500 * n, 15 * n).write(tmp_path / f"rank{n}.json") for n in range(2)]
    both = merged(sources, tmp_path / "both.json")
    with pytest.raises(InputError, match="GPU events of devices 0, 1"):
        check_single(read_trace(both, "both.json"))
    first, second = split_file(both, tmp_path / "out", {"100": 0, "101": 1})
    assert first.name == "rank0.both.pid-100.device-0.json.gz"
    assert read_trace(second, "t").meta.rank == 1
    for source, part in zip(sources, (first, second), strict=True):
        assert tables(part) == tables(source)


@pytest.mark.parametrize("name", PAIRS)
def test_recorded_ranks_come_apart(shared_data, tmp_path, name):
    folder = shared_data / "runs" / name
    sources = [folder / f"trace_rank{number}.json.gz" for number in range(2)]
    if not all(path.is_file() for path in sources):
        pytest.skip(f"no recorded traces in {folder}")
    both = merged(sources, tmp_path / "both.json")
    parts = split_file(both, tmp_path / "out", {})
    assert len(parts) == 2
    for source, part in zip(sources, parts, strict=True):
        ours, theirs = tables(source), tables(part)
        assert {name: list(theirs[name].rows) for name in OF_STEPS} == {
            name: list(ours[name].rows) for name in OF_STEPS
        }
        assert read_trace(part, "t").meta.rank is None


def test_several_devices_of_one_process(tmp_path):
    trace = TraceBuilder()
    trace.step(0, 0, 1000)
    for index in range(4):
        device = index % 2
        correlation = trace.call("cudaLaunchKernel", 100 * index, 5)
        args = {"device": device, "stream": 7, "correlation": correlation}
        trace.event("kernel", f"k{device}", 100 * index + 20, 10, pid=device, tid=7, args=args)
        trace.event("ac2g", "ac2g", 100 * index, 0, ph="s", id=correlation)
        trace.event("ac2g", "ac2g", 100 * index + 20, 0, ph="f", id=correlation, pid=device)
    parts = split_file(trace.write(tmp_path / "a.json"), tmp_path / "out", {})
    assert [path.name for path in parts] == [
        "a.pid-100.device-0.json.gz",
        "a.pid-100.device-1.json.gz",
    ]
    for device, path in enumerate(parts):
        raw = read_raw(path)
        names = [event.name for event in raw.events]
        assert (names.count(f"k{device}"), names.count(f"k{1 - device}")) == (2, 0)
        assert names.count("cudaLaunchKernel") == 4
        assert names.count("ac2g") == 4


def test_a_single_trace_is_not_split(tmp_path):
    path = training(2, 2).write(tmp_path / "a.json")
    with pytest.raises(InputError, match="expected several devices"):
        split_file(path, tmp_path / "out", {})


def test_ranks_in_lock_step_are_refused(tmp_path):
    sources = [rank(n, 1000).write(tmp_path / f"rank{n}.json") for n in range(2)]
    both = merged(sources, tmp_path / "both.json")
    with pytest.raises(InputError, match="20 from process 100, 20 from process 101"):
        split_file(both, tmp_path / "out", {})


def test_merged_under_one_process_and_device_is_seen():
    trace = TraceBuilder()
    for _ in range(2):
        trace._correlation = 0
        for index in range(10):
            trace.kernel("k", 100 + 30 * index, 10)
    with pytest.raises(InputError, match="10 of 20 runtime calls repeat the correlation"):
        check_single(trace_of(trace))
    assert len(records(make_tables(context_of(trace))["steps"])) == 0


def test_gpu_events_of_several_processes_are_seen():
    trace = TraceBuilder()
    trace.gpu("k", 0, 5)
    trace.event("kernel", "k", 10, 5, pid=7, args={"stream": 7})
    with pytest.raises(InputError, match="GPU events of processes 0, 7"):
        check_single(trace_of(trace))


def test_the_step_and_its_arguments(tmp_path):
    sources = [rank(n, 1000 + 500 * n, 15 * n).write(tmp_path / f"rank{n}.json") for n in range(2)]
    both = merged(sources, tmp_path / "both.json")
    asked = argparse.Namespace(trace=both, out_dir=tmp_path / "out", rank=["100=0", "101=1"])
    assert run_step(asked).reason.startswith("2 traces: rank0.both.pid-100.device-0.json.gz")
    assert parse_ranks(["1=2"]) == {"1": 2}
    with pytest.raises(InputError, match="PID=RANK"):
        parse_ranks(["1"])
    with pytest.raises(InputError, match="process 7; expected one of 100, 101"):
        split_file(both, tmp_path / "out", {"7": 0})
    assert Path(tmp_path / "out").is_dir()
