from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import write_record
from perfproof.schema.claims import Verdict, VerifiedSet
from perfproof.traces.annotate import annotate, run_step
from perfproof.traces.columns import read_trace
from perfproof.traces.context import make_context
from perfproof.traces.rank_work import make_tables
from perfproof.traces.tracks import PROCESS
from tests.traces.builder import TraceBuilder, ten_kernels, training
from tests.traces.make import by

CLAIM = {
    "id": "TR-001",
    "class": "cpu_dispatch",
    "source": "trace",
    "statement": "The GPU waits for the host in 12 % of the step.",
    "metric": "gpu_idle_fraction",
    "params": {},
    "value": 0.12,
    "unit": "fraction",
    "share_of_step": 0.12,
    "ranks": [0],
    "evidence": [],
    "remedy": "fuse",
    "verdict": "verified",
    "verifier_value": 0.12,
    "tolerance": 0.01,
    "note": "recomputed",
}


def claims(**more):
    data = {"run_id": "hand", "source": "trace", "claims": [{**CLAIM, **more}]}
    return VerifiedSet.model_validate(data)


def text_of(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def added(path):
    """The events of our process, and its rows by name."""
    events = json.loads(text_of(path))["traceEvents"]
    (pid,) = {e["pid"] for e in events if e.get("args") == {"name": PROCESS}}
    mine = [event for event in events if event["pid"] == pid]
    names = {e["tid"]: e["args"]["name"] for e in mine if e["name"] == "thread_name"}
    rows = defaultdict(list)
    for event in mine:
        if event["ph"] == "X":
            rows[names[event["tid"]]].append(event)
    return mine, dict(rows)


def check_structure(path):
    """What the format of trace events asks, and that the slices of a row do not overlap."""
    mine, rows = added(path)
    for event in mine:
        assert event["ph"] in "XM"
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        if event["ph"] == "M":
            assert set(event["args"]) <= {"name", "sort_index"}
    named = {event["tid"] for event in mine if event["name"] == "thread_name"}
    assert {event["tid"] for event in mine if event["ph"] == "X"} <= named
    for slices in rows.values():
        reach = float("-inf")
        for event in sorted(slices, key=lambda event: event["ts"]):
            assert type(event["ts"]) is float
            assert event["dur"] > 0
            assert event["ts"] >= reach - 1e-3
            reach = event["ts"] + event["dur"]


def stripped(original, annotated):
    """What was put into the original: it is the same before and behind that."""
    before = next(
        (at for at, (a, b) in enumerate(zip(original, annotated, strict=False)) if a != b),
        min(len(original), len(annotated)),
    )
    after = len(original) - before
    assert annotated[:before] == original[:before]
    assert annotated[len(annotated) - after :] == original[before:]
    return annotated[before : len(annotated) - after]


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_the_original_stays_byte_for_byte(tmp_path, ending):
    source = training(3, 4).write(tmp_path / f"a{ending}")
    out = tmp_path / f"out{ending}"
    status = annotate(source, claims().claims, out)
    assert status.line() == "STATUS=ok; reason=4 tracks, 1 of 1 claims"
    assert b"perfproof" in stripped(text_of(source), text_of(out))
    check_structure(out)
    again = tmp_path / f"again{ending}"
    annotate(source, claims().claims, again)
    assert again.read_bytes() == out.read_bytes()


def test_analysis_of_an_annotated_trace_is_the_same(tmp_path):
    source, out = training(3, 4).write(tmp_path / "a.json"), tmp_path / "out.json"
    annotate(source, claims().claims, out)
    tables = [make_tables(make_context(read_trace(path, "t"), 0)) for path in (source, out)]
    assert tables[0] == tables[1]


def test_tracks_hold_the_tables(tmp_path):
    source, out = training(3, 4).write(tmp_path / "a.json"), tmp_path / "out.json"
    annotate(source, claims().claims, out)
    context = make_context(read_trace(source, "t"), 0)
    made = make_tables(context)
    _, rows = added(out)
    assert [event["name"] for event in rows["steps"]] == ["step 0", "step 1", "step 2"]
    assert rows["steps"][1]["args"]["gpu_events"] == by(made["steps"], "step")[1]["gpu_events"]
    for cause, row in by(made["idle"], "cause").items():
        mine = [e["dur"] for e in rows["GPU idle, by cause"] if e["name"] == cause]
        assert (len(mine), sum(mine)) == (row["count"], pytest.approx(row["total_us"]))
    exposed = by(made["window_timeline"], "type")["exposed_comm_time"]["time ms"] * 1000
    assert sum(e["dur"] for e in rows["exposed communication"]) == pytest.approx(exposed)
    (claim,) = rows["TR-001 verified: cpu_dispatch"]
    assert claim["name"] == CLAIM["statement"]
    assert claim["dur"] == pytest.approx(context.window.duration / 1000)
    assert claim["args"]["verifier_value"] == 0.12


def test_times_keep_every_nanosecond(tmp_path):
    trace = TraceBuilder()
    trace.step(1, 1712195495505543, 100)
    trace.gpu("k", 1712195495505550, 20)
    text = trace.text().replace("1712195495505543", "1712195495505543.217")
    source, out = tmp_path / "a.json", tmp_path / "out.json"
    source.write_text(text)
    annotate(source, [], out)
    assert '"ts":1712195495505543.217' in stripped(text.encode(), out.read_bytes()).decode()


def test_claims_of_other_ranks_are_left_out(tmp_path):
    source = ten_kernels(distributedInfo={"rank": 1, "world_size": 2}).write(tmp_path / "a.json")
    out = tmp_path / "out.json"
    assert annotate(source, claims(ranks=[0]).claims, out).reason.endswith("0 of 1 claims")
    assert annotate(source, claims(ranks=[]).claims, out).reason.endswith("1 of 1 claims")
    refuted = claims(ranks=[1], verdict=Verdict.REFUTED).claims
    assert annotate(source, refuted, out).reason.endswith("1 of 1 claims")
    assert "TR-001 refuted: cpu_dispatch" in added(out)[1]


def test_a_process_of_its_own(tmp_path):
    trace = ten_kernels()
    trace.event("python_function", "taken", 0, 1, pid=1_000_000_000)
    trace.event("python_function", "taken", 0, 1, pid="1000000001")
    out = tmp_path / "out.json"
    annotate(trace.write(tmp_path / "a.json"), [], out)
    assert {event["pid"] for event in added(out)[0]} == {1_000_000_002}


def test_lists_empty_traces_and_damaged_ones(tmp_path):
    out = tmp_path / "out.json"
    (tmp_path / "list.json").write_text(json.dumps(ten_kernels().events) + "\n")
    annotate(tmp_path / "list.json", [], out)
    assert len(json.loads(out.read_text())) > 20
    empty = TraceBuilder().write(tmp_path / "empty.json")
    assert annotate(empty, claims().claims, out).state == "ok"
    assert len(added(out)[1]) == 0
    text = training(2, 2).text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    status = annotate(tmp_path / "cut.json", [], out)
    assert status.line().startswith("STATUS=partial; reason=cut.json: file cut short")
    check_structure(out)


def test_the_step(tmp_path):
    source = ten_kernels().write(tmp_path / "a.json")
    write_record(tmp_path / "verified.json", claims())
    asked = argparse.Namespace(
        trace=source, claims=[tmp_path / "verified.json"], out=tmp_path / "out.json"
    )
    assert run_step(asked).reason == "2 tracks, 1 of 1 claims"
    with pytest.raises(InputError, match="the trace itself"):
        annotate(source, [], source)


@pytest.mark.parametrize(
    "name",
    [
        "hta/a100_ddp_rank0of2_nccl_meta.json.gz",
        "hta/v100_ns_abs_ts.pt.trace.json.gz",
        "hta/cpu_only_rank34of300.json.gz",
        "kineto/v100_resnet50_num_workers_4_old_schema.pt.trace.json.gz",
        "tracelens/mi300_vllm_decode_hipgraph.json.gz",
    ],
)
def test_recorded_traces(shared_data, tmp_path, name):
    source, out = shared_data / "traces" / name, tmp_path / "out.json"
    assert annotate(source, claims(ranks=[]).claims, out).state == "ok"
    original, data = text_of(source), out.read_bytes()
    at = data.index(b'\n{"ph":"M","name":"process_name","pid":1000000000')
    assert data.startswith(original[: at - 1])
    assert data.endswith(original[at - 1 :])
    check_structure(out)
