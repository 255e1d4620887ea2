from __future__ import annotations

import gzip
import json

import pytest

from perfproof.core.errors import InputError
from perfproof.traces.raw import read_raw, write_raw
from tests.traces.builder import ten_kernels


def test_texts_and_events_side_by_side(tmp_path):
    path = ten_kernels(distributedInfo={"rank": 3}).write(tmp_path / "a.json.gz")
    raw = read_raw(path)
    assert len(raw.texts) == len(raw.events) == 20
    for text, event in zip(raw.texts, raw.events, strict=True):
        assert json.loads(bytes(text))["name"] == event.name
    assert raw.decoded.document.distributedInfo == {"rank": 3}
    assert "traceEvents" not in raw.members


def test_written_and_read_again(tmp_path):
    raw = read_raw(ten_kernels(schemaVersion=1).write(tmp_path / "a.json"))
    for name in ("b.json", "b.json.gz"):
        size = write_raw(tmp_path / name, raw.members, raw.texts)
        again = read_raw(tmp_path / name)
        assert size == (tmp_path / name).stat().st_size
        assert list(map(bytes, again.texts)) == list(map(bytes, raw.texts))
        assert json.loads(bytes(again.members["schemaVersion"])) == 1
    packed = (tmp_path / "b.json.gz").read_bytes()
    write_raw(tmp_path / "c.json.gz", raw.members, raw.texts)
    assert (tmp_path / "c.json.gz").read_bytes() == packed
    assert gzip.decompress(packed) == (tmp_path / "b.json").read_bytes()


def test_a_list_and_a_cut_file(tmp_path):
    events = ten_kernels().events
    (tmp_path / "list.json").write_text(json.dumps(events))
    assert len(read_raw(tmp_path / "list.json").texts) == 20
    text = ten_kernels().text()
    (tmp_path / "cut.json").write_text(text[: len(text) - 40])
    raw = read_raw(tmp_path / "cut.json")
    assert (len(raw.texts), raw.decoded.repairs.truncated) == (19, True)
    (tmp_path / "none.json").write_text("{}")
    with pytest.raises(InputError, match="no `traceEvents`"):
        read_raw(tmp_path / "none.json")


def test_an_event_of_a_wrong_type_is_left_out_of_both(tmp_path):
    events = [*ten_kernels().events, {"ph": "X", "name": 7}]
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": events}))
    raw = read_raw(tmp_path / "a.json")
    assert len(raw.texts) == len(raw.events) == 20
    assert raw.decoded.repairs.dropped_events == 1
