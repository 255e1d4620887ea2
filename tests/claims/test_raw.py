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
from perfproof.claims.verifier.raw import RawTrace, nanoseconds, read_trace
from tests.claims.kineto import Kineto


@given(st.integers(0, 2 * 10**18))
def test_times_are_exact_to_the_nanosecond(ns: int) -> None:
    """A float64 holds 1.7e15 µs only to 0.25 µs: text is never made a float."""
    assert nanoseconds(f"{ns // 1000}.{ns % 1000:03d}") == ns


@pytest.mark.parametrize(
    ("value", "expected"),
    [(7, 7000), ("7", 7000), ("1.5", 1500), ("1e3", 1_000_000), ("-1.25", -1250),
     ("1.2345", 1234), (None, None), ("NaN", None), ("Infinity", None), ("x", None),
     (True, None), ("1e999999", None), (1e308, None), ("9" * 5000, None), ("²²²²².123", None),
     (2**62 // 1000, 2**62 // 1000 * 1000), (2**62, None), ("-4611686018427387.904", None)],
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
    assert "damaged JSON: cut" in found.lost


def test_a_truncated_gzip_stream_is_read_up_to_the_damage(tmp_path: Path) -> None:
    whole = Kineto()
    for number in range(500):
        whole.gpu(f"kernel {number}", number, number + 1)
    packed = whole.write(tmp_path / "t.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    found = read_trace(path)
    assert found.gpu
    assert "gzip" in found.lost


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


def written(tmp_path: Path, text: str) -> RawTrace:
    path = tmp_path / "t.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return read_trace(path)


def three(**changes: Any) -> str:
    """Three kernels; members that say the rank stand before and behind the events."""
    trace = Kineto().gpu("first", 0, 5).gpu("second", 10, 15).gpu("third", 20, 25)
    header = {"distributedInfo": {"rank": 3}, "traceEvents": trace.events, "deviceProperties": [{}]}
    return json.dumps({**header, **changes})


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (("second", "se\\x\\cond"), "se\\x\\cond"),
        (("second", "se\\\\co\\nd\\u12"), "se\\co\nd\\u12"),
        (("second", "second\t"), "second "),
        (('"ts": 10', '"ts": 10, "x": [NaN, -inf, 1,]'), "second"),
    ],
)
def test_a_damaged_event_is_mended(tmp_path: Path, damage: tuple[str, str], name: str) -> None:
    found = written(tmp_path, "\ufeff" + three().replace(*damage))
    assert [event.name for event in found.gpu] == ["first", name, "third"]
    assert [event.start for event in found.gpu] == [0, 10_000, 20_000]
    assert (found.rank, found.visible_devices, found.lost) == (3, 1, "")


@pytest.mark.parametrize(
    "damage", ['"x": 1,,', '"x": "1" "2",', "x,", '"x": ' + "[" * 9999, '"x": ' + "9" * 9999 + "x,"]
)
def test_an_event_that_cannot_be_mended_is_counted(tmp_path: Path, damage: str) -> None:
    found = written(tmp_path, three().replace('"ts": 10', damage + '"ts": 10'))
    assert [event.name for event in found.gpu] == ["first", "third"]
    assert found.lost == "1 damaged events could not be read"
    assert (found.rank, found.visible_devices) == (3, 1)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (
            '"traceEvents": [',
            '"traceEvents": [7, null, ',
            "2 entries of traceEvents are no objects",
        ),
        ("{}]}", "{},", "members outside traceEvents"),
        ('"deviceProperties"', "deviceProperties", "members outside traceEvents"),
    ],
)
def test_what_else_is_missing(tmp_path: Path, old: str, new: str, lost: str) -> None:
    found = written(tmp_path, three().replace(old, new))
    assert (len(found.gpu), found.rank) == (3, 3)
    assert lost in found.lost


@pytest.mark.parametrize(
    ("value", "linked"),
    [(5, True), (5.0, True), (0, False), (-5, False), (2**70, False), (None, False)],
)
def test_correlations_are_numbers_above_zero(tmp_path: Path, value: Any, linked: bool) -> None:
    trace = Kineto().event("cuda_runtime", "cudaLaunchKernel", 1, 2, correlation=value)
    trace.event("kernel", "k", 5, 6, correlation=value)
    launch = read_trace(trace.write(tmp_path / "t.json.gz")).gpu[0].launch
    assert (launch == 1000) is linked


@pytest.mark.parametrize(
    ("name", "collective", "role"), [("k", "", "comm"), ("k", 5, "compute"), ("k", 5.5, "compute")]
)
def test_a_collective_is_one_by_its_text(
    tmp_path: Path, name: str, collective: Any, role: str
) -> None:
    trace = Kineto().gpu(name, 0, 1, **{"Collective name": collective})
    assert read_trace(trace.write(tmp_path / "t.json.gz")).gpu[0].role == role


@pytest.mark.parametrize("member", [{"pg_config": 5}, {"rank": "9" * 5000}, {"rank": "²"}])
def test_odd_members_are_left_out(tmp_path: Path, member: dict[str, Any]) -> None:
    found = written(tmp_path, three(distributedInfo=member))
    assert (found.rank, found.groups, len(found.gpu)) == (None, {}, 3)
