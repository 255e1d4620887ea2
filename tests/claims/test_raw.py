"""The verifier's reader: exact times, old schemas, damaged files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.claims.verifier.document import UnreadableError
from perfproof.claims.verifier.raw import nanoseconds, read_trace
from tests.claims.kineto import Kineto


@given(st.integers(0, 2 * 10**18))
def test_times_are_exact_to_the_nanosecond(ns: int) -> None:
    """A float64 holds 1.7e15 µs only to 0.25 µs: text is never made a float."""
    assert nanoseconds(f"{ns // 1000}.{ns % 1000:03d}") == ns


@pytest.mark.parametrize(
    ("value", "expected"),
    [(7, 7000), ("7", 7000), ("1.5", 1500), ("1e3", 1_000_000), ("-1.25", -1250),
     ("1.2345", 1234), (None, None), ("NaN", None), ("Infinity", None), ("x", None),
     (True, None)],
)  # fmt: skip
def test_odd_numbers(value: object, expected: int | None) -> None:
    assert nanoseconds(value) == expected


def test_links_by_correlation_to_the_earliest_call(tmp_path: Path) -> None:
    trace = Kineto(rank=3, world=4, devices=4)
    trace.gpu("k", 10, 20, launch=5)
    trace.event("cuda_driver", "cuLaunchKernel", 5.5, 6, correlation=1)
    trace.gpu("unlinked", 20, 30)
    found = read_trace(trace.write(tmp_path / "t.json.gz"))
    assert (found.rank, found.world_size, found.visible_devices) == (3, 4, 4)
    assert [(e.name, e.launch) for e in found.gpu] == [("k", 5000), ("unlinked", None)]


def test_names_of_2021(tmp_path: Path) -> None:
    trace = Kineto()
    trace.event("Operator", "ProfilerStep#4", 0, 100, tid="9")
    trace.event("Operator", "aten::mm", 1, 9, tid="9")
    trace.event("Operator", "enumerate(DataLoader)#_Iter.__next__", 20, 30, tid="9")
    trace.event("Runtime", "cudaLaunchKernel", 5, 6, tid="9", correlation=1)
    trace.event("Kernel", "k", 10, 20, tid="stream 7", correlation=1)
    found = read_trace(trace.write(tmp_path / "t.json.gz"))
    assert [e.name for e in found.cpu_ops] == ["aten::mm"]
    assert len(found.steps) == len(found.loader) == 1
    assert found.gpu[0].launch == 5000


@pytest.mark.parametrize(
    ("name", "args", "role"),
    [
        ("ncclDevKernel_AllGather", {}, "comm"),
        ("void rcclGenericKernel", {}, "comm"),
        ("custom", {"Collective name": "allreduce"}, "comm"),
        ("multimem_all_reduce_kernel", {}, "comm"),
        ("__amd_rocclr_copyBufferAligned", {}, "memcpy"),
        ("__amd_rocclr_fillBufferAligned", {}, "compute"),
        ("gemm", {}, "compute"),
    ],
)
def test_roles(tmp_path: Path, name: str, args: dict[str, Any], role: str) -> None:
    trace = Kineto().gpu(name, 0, 1, **args)
    assert read_trace(trace.write(tmp_path / "t.json.gz")).gpu[0].role == role


def test_durations_that_are_none_cover_no_time(tmp_path: Path) -> None:
    trace = Kineto().gpu("a", 10, 10).gpu("b", 20, 15)
    trace.events[-1]["dur"] = -5
    trace.gpu("c", 30, 31)
    del trace.events[-1]["dur"]
    found = read_trace(trace.write(tmp_path / "t.json.gz"))
    assert [event.end - event.start for event in found.gpu] == [0, 0, 0]


def test_a_truncated_file_is_read_up_to_the_damage(tmp_path: Path) -> None:
    whole = Kineto()
    for number in range(200):
        whole.gpu(f"kernel {number}", number, number + 1)
    text = json.dumps({**whole.header, "traceEvents": whole.events})
    path = tmp_path / "cut.json"
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    found = read_trace(path)
    assert 50 < len(found.gpu) < 200
    assert "damaged JSON" in found.note


def test_a_truncated_gzip_stream_is_read_up_to_the_damage(tmp_path: Path) -> None:
    whole = Kineto()
    for number in range(500):
        whole.gpu(f"kernel {number}", number, number + 1)
    packed = whole.write(tmp_path / "t.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    found = read_trace(path)
    assert found.gpu
    assert "gzip" in found.note


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1", b"\x1f\x8b\x08broken", b"null", b'{"traceEvents": 3}', b"\xff\xfe"],
)
def test_what_is_no_trace_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableError):
        read_trace(path)


def test_a_bare_list_of_events(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps(Kineto().gpu("k", 0, 5).events).encode()))
    assert len(read_trace(path).gpu) == 1


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="No such file"):
        read_trace(tmp_path / "none.json")
