from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.traces.strip import Names, kept_members, strip_paths


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/home/jane/train.py(12): step", "train.py(12): step"),
        ("at ~jane/lib/x.so", "at x.so"),
        ("/home/Jane Doe/run/x.py", "x.py"),
        ("call /a/b/c.py, then /d/e/f.py", "call c.py, then f.py"),
        ("C:\\Users\\jane\\x.py", "x.py"),
        ("C:/Users/jane/x.py", "x.py"),
        ("aten::div / 2", "aten::div / 2"),
        ("void k<1/2>(float*)", "void k<1/2>(float*)"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("autograd::engine::evaluate_function: A", "autograd::engine::evaluate_function: A"),
        ("nn.Module: Linear_0", "nn.Module: Linear_0"),
    ],
)
def test_paths(before, after):
    text = json.dumps({"name": before, "ts": 1.5}).encode()
    assert json.loads(strip_paths(text)) == {"name": after, "ts": 1.5}


def test_escaped_slashes():
    text = rb'{"name": "\/home\/jane\/x.py", "other": "a\\\\/b"}'
    assert json.loads(strip_paths(text)) == {"name": "x.py", "other": "a\\\\/b"}


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=60), max_size=4))
def test_what_is_left_is_json(values):
    assert isinstance(json.loads(strip_paths(json.dumps(values).encode())), dict)


def test_members():
    members = {
        "schemaVersion": b"1",
        "username": b'"jane"',
        "host_name": b'"node17"',
        "cuda_runtime_version": b"12040",
        "hip_driver_version": b"1",
        "traceName": b'"/home/jane/x.json"',
        "deviceProperties": b'[{"name": "GPU A"}]',
    }
    kept = {"schemaVersion", "cuda_runtime_version", "hip_driver_version", "deviceProperties"}
    assert set(kept_members(members)) == kept


def test_names_are_numbered():
    names = Names()
    texts = [b'{"name": "secret"}', b'{"name": "other"}', b'{"name": "secret"}']
    assert [names.strip(text, b"annotation") for text in texts] == [
        b'{"name": "annotation 1"}',
        b'{"name": "annotation 2"}',
        b'{"name": "annotation 1"}',
    ]
    known = b'{"name": "ProfilerStep#3"}'
    assert names.strip(known, b"annotation") == known
