from __future__ import annotations

import json

import pytest

from perfproof.core.errors import InputError
from perfproof.traces.inputs import all_traces, trace_files
from tests.traces.builder import ten_kernels
from tests.traces.make import write_inventory


def test_a_file_and_a_directory_of_traces(tmp_path):
    one = ten_kernels().write(tmp_path / "set" / "b.json")
    two = ten_kernels().write(tmp_path / "set" / "deep" / "a.json.gz")
    (tmp_path / "set" / "notes.txt").write_text("no trace")
    assert trace_files(one) == [(one, "b.json")]
    assert trace_files(tmp_path / "set") == [(one, "b.json"), (two, "deep/a.json.gz")]
    assert len(all_traces([one, tmp_path / "set"])) == 2


def test_an_inventory_says_what_are_traces(tmp_path):
    trace = ten_kernels().write(tmp_path / "rank0.json")
    (tmp_path / "other.json").write_text(json.dumps({}))
    write_inventory(tmp_path, ["rank0.json"])
    assert trace_files(tmp_path) == [(trace, "rank0.json")]


def test_nothing_there(tmp_path):
    with pytest.raises(InputError, match="no such file or directory"):
        trace_files(tmp_path / "absent")
    with pytest.raises(InputError, match="no trace in this directory"):
        trace_files(tmp_path)
