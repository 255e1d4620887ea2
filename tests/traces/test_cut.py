from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from perfproof.core.errors import InputError
from perfproof.traces.columns import read_trace
from perfproof.traces.context import make_context
from perfproof.traces.cut import Options, cut_file, parse_steps, run_step
from perfproof.traces.rank_work import make_tables
from tests.traces.builder import TraceBuilder, training

# Tables over the window of the steps; the others are about the whole file.
OF_STEPS = (
    "window_timeline",
    "kernel_groups",
    "top_kernels",
    "steps",
    "idle",
    "launch_stats",
    "memcpy",
    "dataloader",
    "runtime_calls",
    "cpu_ops",
    "host_overlap",
)
RECORDED = {
    "hta/a100_ddp_rank0of2_nccl_meta.json.gz": range(5, 7),
    "hta/v100_ns_abs_ts.pt.trace.json.gz": range(103, 104),
    "hta/cpu_only_rank34of300.json.gz": range(551, 552),
    "hta/mi250_minitoy_train.json.gz": range(1, 2),
    "hta/multirank_a/sampled_rank-0.json.gz": range(551, 552),
    "kineto/v100_resnet50_num_workers_0_old_schema.pt.trace.json.gz": range(17, 19),
    "tracelens/h100_bert-small.json.gz": range(6, 7),
    "tracelens/mi300_resnet_act_checkpoint.json.gz": range(16, 17),
}
AT_MOST_300_KB = [
    ("hta/a100_rank3of8_6steps_no_ac2g.json.gz", range(1012, 1013)),
    ("hta/a100_ddp_rank0of2_nccl_meta.json.gz", range(5, 6)),
    ("kineto/v100_resnet50_num_workers_0_old_schema.pt.trace.json.gz", range(19, 20)),
]


def tables(path, steps=None):
    made = make_tables(make_context(read_trace(path, path.name), 0, steps))
    return {name: list(made[name].rows) for name in OF_STEPS if name in made}


def events(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["traceEvents"]


@pytest.mark.parametrize(("name", "steps"), RECORDED.items())
def test_every_metric_of_the_steps_is_the_same(shared_data, tmp_path, name, steps):
    trace, out = shared_data / "traces" / name, tmp_path / "cut.json.gz"
    cut_file(trace, steps, out, Options())
    before = tables(trace, steps)
    assert before["steps"]
    assert tables(out) == before
    twice = tmp_path / "twice.json.gz"
    cut_file(out, steps, twice, Options())
    assert twice.read_bytes() == out.read_bytes()


@pytest.mark.parametrize(("name", "steps"), AT_MOST_300_KB)
def test_one_step_is_small(shared_data, tmp_path, name, steps):
    _, size = cut_file(shared_data / "traces" / name, steps, tmp_path / "cut.json.gz", Options())
    assert size <= 300_000


def test_steps_of_a_generated_trace(tmp_path):
    trace, out = training(5, 4).write(tmp_path / "a.json.gz"), tmp_path / "cut.json"
    cut_file(trace, range(2, 4), out, Options())
    assert [row[0] for row in tables(out)["steps"]] == [2, 3]
    assert tables(out) == tables(trace, range(2, 4))
    kinds = Counter(event["cat"] for event in events(out))
    assert "python_function" not in kinds
    cut_file(trace, range(2, 4), out, Options(bulky=True))
    assert Counter(event["cat"] for event in events(out))["python_function"] > 0


def late_work() -> TraceBuilder:
    """Step 1 launches a kernel that runs in step 2, and an unlinked one runs there too."""
    trace = TraceBuilder()
    for number in (1, 2, 3):
        trace.step(number, 1000 * number, 900)
        trace.op("aten::mm", 1000 * number + 10, 100)
        trace.kernel("gemm_kernel", 1000 * number + 200, 50, launched=1000 * number + 20)
    trace.kernel("late_kernel", 2100, 30, launched=1500)
    trace.gpu("unlinked_kernel", 2400, 30)
    trace.kernel("next_kernel", 2950, 200, launched=2800)
    trace.event("ac2g", "ac2g", 1500, 0, ph="s", id=4)
    trace.event("ac2g", "ac2g", 2100, 0, ph="f", id=4)
    trace.event("fwdbwd", "fwdbwd", 2010, 0, ph="s", id=9)
    trace.event("fwdbwd", "fwdbwd", 3510, 0, ph="f", id=9)
    trace.event("ac2g", "ac2g", 1020, 0, ph="s", id=1)
    return trace


def test_launches_before_the_step_and_arrows_stay(tmp_path):
    trace, out = late_work().write(tmp_path / "a.json"), tmp_path / "cut.json"
    cut_file(trace, range(2, 3), out, Options())
    assert tables(out) == tables(trace, range(2, 3))
    names = Counter(event["name"] for event in events(out))
    assert names == {
        "ProfilerStep#2": 1,
        "aten::mm": 2,  # the next step's begins before the window's work has ended
        "cudaLaunchKernel": 4,
        "gemm_kernel": 1,
        "late_kernel": 1,
        "unlinked_kernel": 1,
        "next_kernel": 1,
        "ac2g": 2,
    }


def test_strings_are_stripped_unless_asked(tmp_path):
    trace = training(3, 2, {"username": "jane", "traceName": "/home/jane/x.json"})
    trace.mark("/home/jane/secret.py", 5_000_000, 10)
    trace.events.append(
        {
            "ph": "M",
            "name": "process_name",
            "pid": 1,
            "ts": 0,
            "args": {"name": "/home/jane/python"},
        }
    )
    source = trace.write(tmp_path / "a.json")
    out = tmp_path / "cut.json"
    cut_file(source, range(1), out, Options())
    assert "jane" not in out.read_text()
    assert '"secret.py"' in out.read_text()
    cut_file(source, range(1), out, Options(strip_names=True))
    assert "secret" not in out.read_text()
    assert '"annotation 1"' in out.read_text()
    assert tables(out) == tables(source, range(1))
    cut_file(source, range(1), out, Options(strings=True))
    assert '"username": "jane"' in out.read_text()


SPAN = st.tuples(st.integers(0, 4000), st.integers(0, 900))
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("op", "autograd", "call", "kernel", "copy", "unlinked", "loader")),
        SPAN,
        st.integers(0, 2500),  # how long after its launch a GPU event starts
        st.sampled_from((100, 101)),  # thread
        st.sampled_from((7, 9)),  # stream
    ),
    max_size=40,
)


def random_trace(events) -> TraceBuilder:
    trace = TraceBuilder()
    for number in range(4):
        trace.step(number, 1000 * number, 950)
    for kind, (start, dur), late, tid, stream in events:
        if kind == "op":
            trace.op(f"aten::op{dur % 3}", start, dur, tid=tid)
        elif kind == "autograd":
            trace.op("autograd::engine::evaluate_function: X", start, dur, tid=tid)
        elif kind == "loader":
            trace.mark("enumerate(DataLoader)#x.__next__", start, dur, tid=tid)
        elif kind == "call":
            trace.call("cudaStreamSynchronize", start, dur, tid=tid)
        elif kind == "unlinked":
            trace.gpu("lost_kernel", start, dur, stream=stream)
        else:
            correlation = trace.call("cudaLaunchKernel", start, min(dur, 20), tid=tid)
            name, cat = {
                "kernel": ("gemm_kernel", "kernel"),
                "copy": ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"),
            }[kind]
            more = {"correlation": correlation, "stream": stream}
            trace.gpu(name, start + late, dur, cat=cat, **more)
    return trace


@settings(max_examples=80, deadline=None)
@given(EVENTS, st.integers(0, 3), st.integers(0, 3))
def test_any_trace(tmp_path_factory, events, first, more):
    folder = tmp_path_factory.mktemp("cut")
    trace, out = random_trace(events).write(folder / "a.json"), folder / "cut.json"
    steps = range(first, min(first + more, 3) + 1)
    try:
        cut_file(trace, steps, out, Options())
    except InputError:
        reject()  # the steps launched nothing
    assert tables(out) == tables(trace, steps)


@pytest.mark.parametrize(("text", "steps"), [("3", range(3, 4)), ("3-4", range(3, 5))])
def test_parse_steps(text, steps):
    assert parse_steps(text) == steps


@pytest.mark.parametrize("text", ["", "4-3", "a", "1,2", "-1"])
def test_parse_steps_refuses(text):
    with pytest.raises(InputError, match="a step number N, or a range N-M"):
        parse_steps(text)


def test_steps_that_are_not_there(tmp_path):
    trace = training(2, 2)
    trace.step(7, 9_000_000, 100)
    path, out = trace.write(tmp_path / "a.json"), tmp_path / "out.json"
    with pytest.raises(InputError, match="steps 0 to 7; expected step 3-5"):
        cut_file(path, range(3, 6), out, Options())
    with pytest.raises(InputError, match="no GPU event launched in 7"):
        cut_file(path, range(7, 8), out, Options())
    assert not out.exists()


def test_the_step(tmp_path):
    trace = training(3, 2).write(tmp_path / "a.json")
    status = run_step(
        argparse.Namespace(
            trace=trace,
            steps="1-2",
            out=tmp_path / "out.json.gz",
            keep_strings=False,
            all_kinds=False,
            strip_names=False,
        )
    )
    size = (tmp_path / "out.json.gz").stat().st_size
    count = len(events(tmp_path / "out.json.gz"))
    assert status.line() == f"STATUS=ok; reason={count} events, {size} bytes"
