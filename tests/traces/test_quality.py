from __future__ import annotations

import pytest

from perfproof.traces.columns import build
from perfproof.traces.context import make_context
from perfproof.traces.decode import decode_file
from perfproof.traces.quality import findings
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import context_of, trace_of


def found(trace):
    return {finding.code: finding for finding in findings(context_of(trace))}


def with_step(trace=None):
    trace = trace or ten_kernels()
    trace.step(1, 990, 400)
    return trace


def test_a_clean_trace_has_only_its_link_share():
    assert {(f.code, f.severity, f.value) for f in found(with_step()).values()} == {
        ("unlinked_gpu_events", "info", 0)
    }


@pytest.mark.parametrize(("alone", "severity"), [(1, "warn"), (30, "bad")])
def test_unlinked_share(alone, severity):
    trace = with_step()
    for index in range(alone):
        trace.gpu("x", 1300 + index, 1)
    finding = found(trace)["unlinked_gpu_events"]
    assert finding.severity == severity
    assert finding.value == pytest.approx(alone / (alone + 10))


def test_cpu_only():
    trace = TraceBuilder()
    trace.op("aten::add", 0, 5)
    assert set(found(trace)) == {"no_device_timeline", "no_steps"}


def test_steps_without_work_and_missing_steps():
    trace = with_step()
    trace.step(2, 1400, 10)
    trace.step(5, 1500, 10)
    trace.step(6, 1600, 10)
    codes = found(trace)
    assert (
        codes["steps_without_gpu_events"].value,
        codes["steps_without_gpu_events"].severity,
    ) == (
        3,
        "bad",
    )
    assert codes["steps_missing"].value == 2


def test_impossible_times():
    trace = with_step()
    trace.kernel("x", 1100, -5)
    trace.kernel("x", 1100, 0)
    trace.kernel("x", 1100, "?")
    trace.gpu("x", "?", 5)
    codes = found(trace)
    counts = {code: codes[code].value for code in codes if code.endswith(("duration", "timestamp"))}
    assert counts == {
        "negative_duration": 1,
        "zero_duration": 1,
        "no_duration": 1,
        "no_timestamp": 1,
    }
    assert codes["negative_duration"].severity == "bad"


def test_graph_replays_recorded_in_part():
    trace = TraceBuilder()
    for launch, kernels in enumerate((10, 10, 1)):
        correlation = trace.call("cudaGraphLaunch", 1000 * launch, 5)
        for index in range(kernels):
            trace.gpu("k", 1000 * launch + 10 + 30 * index, 20, correlation=correlation)
    finding = found(trace)["graph_replays_under_recorded"]
    assert (finding.value, finding.severity) == (1, "warn")


def test_repairs_are_findings(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(with_step().text()[:-200])
    context = make_context(build(decode_file(path), "trace.json"), 0)
    finding = next(f for f in findings(context) if f.code == "repaired")
    assert finding.severity == "bad"
    assert "cut short" in finding.message


def test_the_finding_names_the_events_that_were_lost_or_mended(tmp_path):
    trace = with_step()
    trace.kernel("lost", 1300, 5, note="LOST")
    trace.kernel("mended", 1310, 5, note="MENDED")
    path = tmp_path / "trace.json"
    text = trace.text().replace('"note": "LOST"', '"note" "LOST"')
    path.write_text(text.replace('"note": "MENDED"', r'"note": "\x"'))
    context = make_context(build(decode_file(path), "trace.json"), 0)
    finding = next(f for f in findings(context) if f.code == "repaired")
    assert (finding.severity, finding.value) == ("bad", 2)
    assert "1 damaged events dropped (lost)" in finding.message
    assert "1 events with bad escapes or commas mended (mended)" in finding.message


def test_steps_inside_others_and_repeated_ones():
    trace = with_step()
    trace.step(1, 990, 400)
    trace.step(7, 1000, 20)
    trace.step(2, 1380, 50)
    codes = found(trace)
    values = {code: (f.severity, f.value) for code, f in codes.items() if "_steps" in code}
    assert values == {
        "nested_steps": ("warn", 2),
        "duplicate_steps": ("warn", 1),
        "overlapping_steps": ("warn", 1),
    }


def test_a_step_number_too_long_to_be_one_is_bad():
    trace = with_step()
    trace.mark("ProfilerStep#" + "9" * 5000, 1400, 100)
    finding = found(trace)["unreadable_steps"]
    assert (finding.severity, finding.value) == ("bad", 1)


@pytest.mark.parametrize("world", [0, 1, -4, 10**9, 2**70, "x", [], 1e300])
def test_a_world_that_cannot_be_is_said_and_not_used(world):
    trace = with_step(ten_kernels(distributedInfo={"rank": 1, "world_size": world}))
    assert trace_of(trace).meta.world_size is None
    assert "no number of ranks for rank 1" in found(trace)["impossible_metadata"].message
