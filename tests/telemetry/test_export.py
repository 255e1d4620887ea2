"""The reader of the export: what is wrong is named, the rest is read."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.core.errors import InputError
from perfproof.telemetry.export import read_export, write_export
from perfproof.telemetry.store import Series, Store, tidy
from tests.telemetry.exports import UTIL, series, write_lines

GOOD = series(UTIL, lambda s: s, range(4), card="0", instance="a1")


def test_series_become_columns(tmp_path: Path) -> None:
    store = read_export(write_lines(tmp_path / "e.jsonl.gz", [GOOD]))
    (one,) = store.select(UTIL, (("card", "0"),))
    assert one.labels == {"card": "0", "instance": "a1"}
    assert one.values.tolist() == [0, 1, 2, 3]
    assert np.diff(one.times_ms).tolist() == [1000] * 3
    assert (store.samples, store.duplicates, store.problems) == (4, 0, [])


def test_plain_text_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n")
    assert read_export(path).samples == 4


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2: .*truncated.*not used"),
        ("[]", "line 2: Expected `object`"),
        ('{"metric":{"card":"0"},"values":[1],"timestamps":[1]}', "line 2: no metric name"),
        ('{"metric":{"__name__":"x"},"values":[1,2],"timestamps":[1]}', "2 values, 1 timestamps"),
        ('{"metric":{"__name__":"x"},"values":[1],"timestamps":[1.5]}', "line 2: "),
        ('{"metric":{"__name__":"x"},"values":[true],"timestamps":[1]}', "line 2: "),
        ('{"metric":{"__name__":"x"},"values":["abc"],"timestamps":["x"]}', "line 2: "),
        ('{"metric":{"__name__":"x"},"values":[1],"timestamps":[99999999999999999999]}', "line 2"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_read(tmp_path: Path, line: str, says: str) -> None:
    store = read_export(write_lines(tmp_path / "e.gz", [GOOD, line, {**GOOD, "metric": {
        "__name__": UTIL, "card": "1"}}]))  # fmt: skip
    (problem,) = store.problems
    assert re.search(says, problem), problem
    assert len(store.select(UTIL)) == 2


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    store = read_export(write_lines(tmp_path / "e.gz", [GOOD, *["{"] * 9]))
    assert len(store.problems) == 6
    assert store.problems[-1] == "4 more lines not used"


@pytest.mark.parametrize("content", [b"", b"\n\n", gzip.compress(b""), b"{\n"])
def test_an_export_without_a_series_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "e.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no series") as fault:
        read_export(path)
    assert "\n" not in str(fault.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_export(tmp_path / "none.jsonl.gz")


def test_a_cut_file_keeps_the_lines_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl.gz"
    lines = [
        series(UTIL, lambda s, c=c: s * 7919 * (c + 1) % 1009 / 7, range(500), card=str(c))
        for c in range(8)
    ]
    whole = write_lines(path, lines).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    store = read_export(path)
    assert 0 < len(store.select(UTIL)) < 8
    assert "ends damaged after line" in store.problems[-1]


def test_staleness_markers_and_infinities_are_no_samples(tmp_path: Path) -> None:
    line = {**GOOD, "values": [1, None, "Infinity", 2]}
    (one,) = read_export(write_lines(tmp_path / "e.gz", [line])).select(UTIL)
    assert one.values.tolist() == [1, 2]


def test_duplicates_and_time_that_steps_back(tmp_path: Path) -> None:
    line = {**GOOD, "timestamps": [2000, 1000, 2000, 3000], "values": [5, 1, 6, 7]}
    store = read_export(write_lines(tmp_path / "e.gz", [line]))
    (one,) = store.select(UTIL)
    assert (one.times_ms.tolist(), one.values.tolist()) == ([1000, 2000, 3000], [1, 6, 7])
    assert store.problems == [
        "time steps back 1 times within a series; sorted",
        "1 samples of a time that was there; last kept",
    ]
    assert store.duplicates == 1


def test_a_series_may_go_on_in_a_later_line(tmp_path: Path) -> None:
    later = {**GOOD, "timestamps": [time + 4000 for time in GOOD["timestamps"]]}
    (one,) = read_export(write_lines(tmp_path / "e.gz", [GOOD, later])).select(UTIL)
    assert len(one.values) == 8


def test_label_values_may_hold_anything(tmp_path: Path) -> None:
    labels = {"card": "0", "instance": 'a"1\\ \n日本 {x="y"}'}
    store = read_export(write_lines(tmp_path / "e.gz", [series(UTIL, lambda _: 1, **labels)]))
    assert store.select(UTIL, tuple(labels.items()))
    again = tmp_path / "again.jsonl"
    again.write_bytes(b"".join(write_export(store)))
    assert read_export(again).select(UTIL)[0].labels == labels


def test_clipping_and_unwanted_metrics(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "e.gz", [GOOD, series("other", lambda _: 1.0)])
    first = GOOD["timestamps"][1]
    store = read_export(path, (first, first + 1000), frozenset({UTIL}))
    assert list(store.series) == [UTIL]
    assert (store.outside, store.select(UTIL)[0].values.tolist()) == (2, [1, 2])


def test_series_that_were_sampled_together_share_their_times(tmp_path: Path) -> None:
    lines = [series(UTIL, lambda s: s, card=str(number)) for number in range(3)]
    one, two, three = read_export(write_lines(tmp_path / "e.gz", lines)).select(UTIL)
    assert one.times_ms is two.times_ms is three.times_ms


samples = st.lists(
    st.tuples(st.integers(0, 50), st.floats(-1e6, 1e6) | st.just(float("nan"))), max_size=40
)


@given(samples)
def test_tidy_sorts_and_keeps_the_last_of_a_time(pairs: list[tuple[int, float]]) -> None:
    times = np.array([time for time, _ in pairs], dtype=np.int64)
    found = tidy(times, np.array([value for _, value in pairs], dtype=np.float64))
    expected = {time: value for time, value in pairs if value == value}
    assert found.times_ms.tolist() == sorted(expected)
    assert found.values.tolist() == [expected[time] for time in sorted(expected)]


def test_writing_is_reading_backwards(tmp_path: Path) -> None:
    store = Store()
    times = np.array([1, 5], dtype=np.int64)
    store.add("m", Series({"card": "1"}, times, np.array([0.1, 1e300])))
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"".join(write_export(store)))
    (one,) = read_export(path).select("m")
    assert (one.times_ms.tolist(), one.values.tolist()) == ([1, 5], [0.1, 1e300])
