from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.traces.decode import decode_file, gunzip
from perfproof.traces.repair import Repairs, mend, salvage
from tests.traces.builder import TraceBuilder, ten_kernels


def read(tmp_path, data: bytes):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    return decode_file(path)


def text(**meta: object) -> str:
    return ten_kernels(distributedInfo={"rank": 3, "world_size": 8}, **meta).text()


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "inf", "-inf", "nan"])
def test_non_finite_numbers_become_null(tmp_path, constant):
    damaged = text().replace(
        '"stream": 7', f'"stream": 7, "memory bandwidth (GB/s)": {constant}', 2
    )
    decoded = read(tmp_path, damaged.encode())
    assert len(decoded.document.traceEvents) == 20
    assert (decoded.repairs.non_finite, decoded.repairs.count()) == (2, 2)
    assert not decoded.repairs.lost()
    assert decoded.document.distributedInfo == {"rank": 3, "world_size": 8}


def test_a_duration_that_is_no_number_costs_only_itself(tmp_path):
    decoded = read(tmp_path, text().replace('"dur": 20', '"dur": NaN', 1).encode())
    durations = [bytes(e.dur) for e in decoded.document.traceEvents if e.cat == "kernel"]
    assert durations == [b"null"] + [b"20"] * 9


def test_names_that_look_like_damage_stay_as_they_are(tmp_path):
    trace = TraceBuilder()
    trace.op("say [NaN, inf] }, { twice", 1, 2)
    trace.op("after", 4, 2)
    damaged = trace.text().replace('"dur": 2', '"dur": Infinity', 2)
    names = [event.name for event in read(tmp_path, damaged.encode()).document.traceEvents]
    assert names == ["say [NaN, inf] }, { twice", "after"]


def test_bytes_that_are_not_utf8_are_replaced(tmp_path):
    decoded = read(tmp_path, text().encode().replace(b"gemm_kernel", b"gemm\xff\xfe", 1))
    assert len(decoded.document.traceEvents) == 20
    assert decoded.repairs.bad_utf8 == 2


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"gemm_kernel"', r'"gemm\q"'),
        ('"gemm_kernel"', '"gemm\tkernel"'),
        ('"correlation": 1}', '"correlation": 1,}'),
    ],
    ids=["escape", "control character", "trailing comma"],
)
def test_events_with_bad_syntax_are_mended(tmp_path, good, bad):
    decoded = read(tmp_path, text().replace(good, bad, 1).encode())
    assert len(decoded.document.traceEvents) == 20
    assert (decoded.repairs.syntax, decoded.repairs.lost()) == (1, False)


def test_a_trailing_comma_after_the_last_event(tmp_path):
    decoded = read(tmp_path, text().replace("}}]", "}},]").encode())
    assert len(decoded.document.traceEvents) == 20
    assert not decoded.repairs.lost()


def test_damaged_events_are_dropped_and_the_others_kept(tmp_path):
    damaged = (
        text().replace('"ph": "X"', '"ph": "X" "', 1).replace('"cat": "kernel"', '"cat": 5', 1)
    )
    decoded = read(tmp_path, damaged.encode())
    assert len(decoded.document.traceEvents) == 18
    assert decoded.repairs.dropped_events == 2
    assert "2 damaged events dropped" in decoded.repairs.describe()


@settings(deadline=None)
@given(st.floats(0, 1))
def test_a_cut_file_gives_its_whole_events(part):
    data = text().encode()
    data = data[: int(40 + part * (len(data) - 43))]  # at most to just before the list's end
    repairs = Repairs()
    found = salvage(data, repairs)
    if found is None:
        assert b'"traceEvents": [' not in data
        return
    whole = sum(data.count(end) for end in (b'"stream": 7, "correlation": ', b'{"correlation": '))
    assert len(found.events) in (whole, whole - 1)
    assert repairs.truncated
    assert found.meta["distributedInfo"] == {"rank": 3, "world_size": 8}


def test_a_file_cut_behind_its_events_loses_none_of_them(tmp_path):
    decoded = read(tmp_path, text().encode()[:-1])
    assert len(decoded.document.traceEvents) == 20
    assert decoded.repairs.metadata
    assert not decoded.repairs.lost()


def test_a_cut_gzip_gives_what_came_before_the_cut():
    data = text().encode() * 40
    packed = gzip.compress(data)
    repairs = Repairs()
    found = gunzip(packed[: len(packed) // 2], repairs)
    assert repairs.truncated_gzip
    assert data.startswith(found)
    assert found


def test_a_wrong_checksum_is_said_and_costs_no_data():
    data = text().encode()
    repairs = Repairs()
    assert gunzip(gzip.compress(data)[:-8] + bytes(8), repairs) == data
    assert repairs.lost()


def test_mend_leaves_good_escapes_alone():
    good = r'{"a": "tab \t, quote \", slash \\q, \u00e9", "b": [1, {"c": null}]}'
    assert mend(good) == (good, 0)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"stream": 7', '"stream": 7, "x": ' + "[" * 20_000 + "]" * 20_000),
        ('"cat": "kernel"', '"cat": ' + "[" * 20_000 + "]" * 20_000),
    ],
    ids=["arguments", "category"],
)
def test_nesting_beyond_all_use_costs_the_event(tmp_path, good, bad):
    decoded = read(tmp_path, text().replace(good, bad, 1).encode())
    assert len(decoded.document.traceEvents) == 19
    assert (decoded.repairs.dropped_events, decoded.repairs.dropped) == (1, ["gemm_kernel"])
    assert decoded.document.distributedInfo == {"rank": 3, "world_size": 8}


def test_nesting_beyond_all_use_in_the_metadata(tmp_path):
    deep = "[" * 20_000 + "]" * 20_000
    decoded = read(
        tmp_path, text().replace('"schemaVersion": 1', f'"schemaVersion": {deep}').encode()
    )
    assert len(decoded.document.traceEvents) == 20
    assert decoded.repairs.metadata


def test_numbers_of_thousands_of_digits(tmp_path):
    decoded = read(tmp_path, text().replace('"pid": 100', '"pid": ' + "9" * 5000, 1).encode())
    assert len(decoded.document.traceEvents) == 19
    assert decoded.repairs.dropped_events == 1


def test_messages_name_the_first_events_only():
    repairs = Repairs()
    for index in range(9):
        repairs.drop(f'{{"name": "k{index}\t{"x" * 200}"}}')
    listed = repairs.describe()
    assert listed.startswith("9 damaged events dropped (k0 xxx")
    assert listed.endswith("…)")
    assert "k4" in listed
    assert "k5" not in listed
    assert len(listed) < 500
