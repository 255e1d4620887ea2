from __future__ import annotations

import gzip
import json

import pytest

from perfproof.core.errors import InputError
from perfproof.traces.columns import read_trace
from tests.traces.builder import TraceBuilder, ten_kernels

NOT_TRACES = {
    "empty": b"",
    "blank": b" \n",
    "object": b"{}",
    "other object": b'{"a": [1, 2]}',
    "numbers": b"[1, 2]",
    "text": b"hello",
    "zip": b"PK\x03\x04",
    "events of the wrong type": b'{"traceEvents": {"ph": "X"}}',
    "empty gzip": gzip.compress(b""),
    "cut before the first event": b'{"traceEvents": [{"ph": "X", "ca',
}


@pytest.mark.parametrize("data", NOT_TRACES.values(), ids=NOT_TRACES)
def test_files_that_are_no_traces_are_refused_in_one_line(tmp_path, data):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match="expected a kineto trace") as fault:
        read_trace(path, "trace.json")
    assert "\n" not in str(fault.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: No such file"):
        read_trace(tmp_path / "none.json", "none.json")


def test_gzip_is_known_by_its_content_and_may_have_several_members(tmp_path):
    data = ten_kernels().text().encode()
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(data[:700]) + gzip.compress(data[700:]))
    trace = read_trace(path, "trace.json")
    assert (trace.events, len(trace.gpu), trace.repairs.count()) == (20, 10, 0)


def test_a_list_of_events_is_a_trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(ten_kernels().events))
    assert len(read_trace(path, "trace.json").gpu) == 10


def test_no_events_is_an_empty_trace(tmp_path):
    path = TraceBuilder().write(tmp_path / "trace.json")
    assert read_trace(path, "trace.json").events == 0


def test_timestamps_keep_nanoseconds_through_gzip(tmp_path):
    path = tmp_path / "trace.json.gz"
    text = '{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1712195495505543.226, "dur": 0.5}]}'
    path.write_bytes(gzip.compress(text.encode()))
    gpu = read_trace(path, "x").gpu
    assert (gpu.start.tolist(), gpu.duration.tolist()) == ([1712195495505543226], [500])
