from __future__ import annotations

import gzip
import json
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.core.series import Series, from_line, line, merged, read_export, write_export


def series(values: dict[int, float], **labels: str) -> Series:
    metric = {"__name__": "power", **labels}
    return Series(metric, array("q", values), array("d", values.values()))


def test_a_line_is_what_a_store_writes() -> None:
    text = line(series({1000: 3.0, 2000: 0.5}, instance="a1", card="0"))
    assert text == (
        '{"metric":{"__name__":"power","card":"0","instance":"a1"},'
        '"values":[3,0.5],"timestamps":[1000,2000]}'
    )
    back = from_line(text)
    assert (back.metric["card"], list(back.values)) == ("0", [3.0, 0.5])


def test_parts_of_a_series_come_together_in_order_and_the_last_counts() -> None:
    late, early = series({3000: 3.0, 4000: 4.0}), series({1000: 1.0, 3000: 9.0})
    (whole,) = merged([late, early])
    assert dict(zip(whole.times_ms, whole.values, strict=True)) == {1000: 1, 3000: 9, 4000: 4}
    assert list(whole.times_ms) == [1000, 3000, 4000]


def test_a_series_without_samples_is_none() -> None:
    assert merged([series({}), series({1: 1.0}, card="1")])[0].metric["card"] == "1"


def test_the_order_of_what_is_given_leaves_no_mark(tmp_path: Path) -> None:
    parts = [series({2: 1.0, 1: 2.0}, card="1"), series({1: 1.0}, card="0")]
    assert write_export(tmp_path / "a.gz", parts) == 2
    write_export(tmp_path / "b.gz", reversed(parts))
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert [one.metric["card"] for one in read_export(tmp_path / "a.gz")] == ["0", "1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gz", "b.gz"]


def test_plain_lines_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text(line(series({1: 2.0})) + "\n")
    assert read_export(tmp_path / "plain")[0].values[0] == 2.0


@pytest.mark.parametrize(
    "text", ["{}", '{"metric":{},"values":[1],"timestamps":[]}', "[", '{"metric":3}']
)
def test_what_is_no_series_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        from_line(text)


def test_numbers_that_json_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        line(series({1: float("nan")}))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
samples = st.dictionaries(
    st.integers(0, 2**41), st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9
)


@given(st.lists(st.tuples(st.dictionaries(texts, texts, max_size=3), samples), max_size=5))
def test_every_file_reads_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[dict[str, str], dict[int, float]]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl.gz"
    parts = [Series(m, array("q", s), array("d", s.values())) for m, s in found]
    write_export(path, parts)
    expected = [(one.key, list(one.times_ms), list(one.values)) for one in merged(parts)]
    assert [(o.key, list(o.times_ms), list(o.values)) for o in read_export(path)] == expected
    for text in gzip.decompress(path.read_bytes()).splitlines():
        assert json.loads(text)["timestamps"]
