from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.core.files import digest_file
from perfproof.traces.csvfile import LONGEST_TEXT, Rows, write_table

NAMES = [
    "a\rb",
    "a\nb",
    "a\r\nb",
    "\r",
    'say "x", y',
    "=1+1",
    "+1",
    "-1",
    "@x",
    "a\u2028b\x85c\x0b",
]


def table_of(names):
    return Rows(("name", "value"), [(name, index) for index, name in enumerate(names)])


@pytest.mark.parametrize("read", ["csv", "pandas"])
def test_names_come_back_as_they_are(tmp_path, read):
    table = write_table(tmp_path, "t.csv", table_of(NAMES))
    path = tmp_path / "t.csv"
    assert (table.rows, table.blake3) == (len(NAMES), digest_file(path))
    if read == "csv":
        with path.open(encoding="utf-8", newline="") as stream:
            names = [row["name"] for row in csv.DictReader(stream)]
    else:
        names = pd.read_csv(path, dtype=str, keep_default_na=False)["name"].tolist()
    assert names == NAMES


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_comes_back(names):
    text = table_of(names).text()
    assert [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:] == names


def test_plain_rows_end_with_a_line_feed_only():
    table = Rows(("a", "b"), [("x", None), (1, 0.1)])
    assert table.text() == "a,b\nx,\n1,0.1\n"


def test_long_texts_are_cut_and_stay_different():
    names = ["x" * 200_000, "x" * 200_000 + "y", "x" * LONGEST_TEXT]
    text = table_of(names).text()
    first, second, third = (row[0] for row in [*csv.reader(io.StringIO(text))][1:])
    assert first.startswith("x" * 4096 + "… [cut; 200000 characters, blake3 ")
    assert first != second
    assert len(first) < LONGEST_TEXT
    assert third == names[2]
