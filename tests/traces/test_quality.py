from __future__ import annotations

import pytest

from perfproof.traces.columns import build
from perfproof.traces.context import make_context
from perfproof.traces.decode import decode_file
from perfproof.traces.quality import findings
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import context_of


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
    assert codes["zero_duration"].severity == "info"
    assert codes["negative_duration"].severity == "bad"


def test_durations_that_run_over_their_successors():
    trace = with_step()
    trace.kernel("overflow", 1000, 290)
    finding = found(trace)["same_stream_overlap"]
    assert (finding.severity, finding.value) == ("bad", 200)


def test_kernels_on_two_streams_may_overlap():
    trace = with_step()
    trace.kernel("beside", 1000, 290, stream=9)
    assert "same_stream_overlap" not in found(trace)


@pytest.mark.parametrize("at", [1000 - 1_000_000, 1000 + 1_000_000])
def test_a_stray_event_that_stretches_the_span(at):
    trace = with_step()
    trace.gpu("stray", at, 5)
    finding = found(trace)["stray_gpu_events"]
    assert (finding.severity, finding.value) == ("bad", 1)
    assert "from 0.29 to" in finding.message


def test_a_long_pause_between_two_halves_is_no_stray():
    trace = ten_kernels()
    for index in range(10):
        trace.kernel("late", 2_000_000 + 30 * index, 20)
    assert "stray_gpu_events" not in found(trace)


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
