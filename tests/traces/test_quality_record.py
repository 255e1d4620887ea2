from __future__ import annotations

import argparse

import pytest

from perfproof.core.files import read_record
from perfproof.schema.base import Reason
from perfproof.schema.traces import TraceQuality, TraceSummary
from perfproof.traces.quality_record import measured
from perfproof.traces.tables import QUALITY, SUMMARY, run_step
from tests.traces.builder import TraceBuilder, ten_kernels, training
from tests.traces.make import context_of, write_inventory
from tests.traces.recorded import ENTRIES, read_recorded, short_name
from tests.traces.test_clock_offset import rank


def quality(folder, *names):
    inventory = write_inventory(folder, list(names))
    run_step(argparse.Namespace(inventory=inventory, out_dir=folder / "out", jobs=1))
    return read_record(folder / "out" / QUALITY, TraceQuality)


def test_a_good_trace(tmp_path):
    training(3, 2, {"distributedInfo": {"rank": 0, "world_size": 1}}).write(tmp_path / "a.json")
    (found,) = quality(tmp_path, "a.json").ranks
    assert (found.linked_to_launch, found.worst) == (1, "info")
    assert 0 < found.linked_to_op <= 1
    assert (found.steps_expected, found.steps_recorded, found.steps_with_gpu_events) == (3, 3, 3)
    assert found.busy_us == found.busy_clipped_us > 0
    assert (found.devices, found.streams, found.ranks_missing) == ([0], 2, 0)
    assert found.reasons == {
        "clock_offset_us": Reason.NOT_APPLICABLE,
        "clock_offset_spread_us": Reason.NOT_APPLICABLE,
    }


def test_what_is_wrong_is_counted():
    trace = TraceBuilder()
    trace.step(1, 0, 1000)
    trace.step(4, 1000, 500)
    trace.kernel("k", 100, 10, launched=50)
    trace.gpu("unlinked", 300, 10)
    trace.gpu("zero", 400, 0)
    trace.gpu("negative", 500, -3)
    trace.gpu("none", 600, 5)
    del trace.events[-1]["dur"]
    numbers = measured(context_of(trace))
    assert numbers["linked_to_launch"] == 0.2
    assert (numbers["steps_expected"], numbers["steps_recorded"]) == (4, 2)
    assert numbers["steps_with_gpu_events"] == 1
    assert numbers["profiled_step_us"] == 750
    assert (numbers["zero_durations"], numbers["negative_durations"]) == (1, 1)
    assert numbers["missing_durations"] == 1
    assert (numbers["span_us"], numbers["largest_gap_us"]) == (210, 190)


def test_an_impossible_duration_is_cut_where_the_next_event_begins(tmp_path):
    trace = ten_kernels()
    trace.gpu("overflow", 995, 1_000_000, correlation=0)
    trace.write(tmp_path / "a.json")
    (found,) = quality(tmp_path, "a.json").ranks
    assert found.impossible_durations == 1
    assert (found.busy_us, found.busy_clipped_us) == (1_000_000, 205)
    codes = {finding.code: finding for finding in found.findings}
    assert (codes["impossible_duration"].severity, found.worst) == ("bad", "bad")


@pytest.mark.parametrize("over", [11, 25])
def test_running_into_one_successor_is_possible(over):
    trace = TraceBuilder()
    trace.gpu("k", 0, 10 + over)
    trace.gpu("k", 10, 20)
    trace.gpu("k", 40, 20)
    assert measured(context_of(trace))["impossible_durations"] == 0


def test_events_of_other_streams_may_run_beside():
    trace = ten_kernels()
    trace.gpu("long", 995, 1000, stream=9)
    assert measured(context_of(trace))["impossible_durations"] == 0


def test_graph_launches():
    trace = TraceBuilder()
    for start, events in ((0, 10), (1000, 2)):
        correlation = trace.call("cudaGraphLaunch", start, 5)
        for index in range(events):
            trace.gpu("k", start + 10 + 20 * index, 10, correlation=correlation)
    numbers = measured(context_of(trace))
    assert (numbers["graph_launches"], numbers["graph_launches_under_recorded"]) == (2, 1)


def test_ranks_missing_and_clock_offsets(tmp_path):
    for number in (0, 1):
        trace = rank(number, 40 * number)
        trace.meta["baseTimeNanoseconds"] = 0
        trace.meta["distributedInfo"]["world_size"] = 4
        trace.write(tmp_path / f"rank{number}.json")
    first, second = quality(tmp_path, "rank0.json", "rank1.json").ranks
    assert (first.ranks_missing, first.clock_offset_us) == (2, None)
    assert first.reasons["clock_offset_us"] == Reason.NOT_APPLICABLE
    assert (second.clock_offset_us, second.clock_offset_spread_us) == (40, 0)
    summary = read_record(tmp_path / "out" / SUMMARY, TraceSummary)
    assert [r.findings for r in summary.ranks] == [first.findings, second.findings]


def test_cpu_only_and_unreadable(tmp_path):
    trace = TraceBuilder()
    trace.op("aten::add", 10, 5)
    trace.write(tmp_path / "rank0.json")
    (tmp_path / "rank1.json").write_text("no trace")
    found = quality(tmp_path, "rank0.json", "rank1.json")
    assert [one.reasons["linked_to_op"] for one in found.ranks] == [Reason.NO_DEVICE]
    assert [problem.where for problem in found.problems] == ["rank1.json"]


@pytest.mark.parametrize("name", ["mi300_resnet_act_checkpoint", "mi300_vllm_decode_hipgraph"])
def test_recorded(shared_data, name):
    """968 of 3653 events have no launch; a graph's events have no operation."""
    entry = next((entry for entry in ENTRIES if short_name(entry) == name), None)
    numbers = measured(read_recorded(entry).context)
    expected = {
        "mi300_resnet_act_checkpoint": (1 - 968 / 3653, 1 - 968 / 3653),
        "mi300_vllm_decode_hipgraph": (1, 13 / 434),
    }
    assert (numbers["linked_to_launch"], numbers["linked_to_op"]) == pytest.approx(expected[name])
    assert numbers["impossible_durations"] == 0
