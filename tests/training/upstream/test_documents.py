"""Keys of a trainer's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.training.upstream.documents import add, get, merge, put


def document() -> dict[str, Any]:
    return {"a": {"b": {"size": 1, "other": 2}, "heads": {"x": 1}}, "top": 0}


def test_put_sets_a_key_that_is_there() -> None:
    made = document()
    put(made, "a.b.size", 5, "t.json")
    assert made["a"]["b"] == {"size": 5, "other": 2}


@pytest.mark.parametrize(
    ("dotted", "message"),
    [
        ("a.b.sise", "t.json: a.b.sise: no such key; expected 'size' (the nearest valid one)"),
        ("a.zz.size", "t.json: a.zz: no such key; expected one of: b, heads"),
        ("top.b", "t.json: top: found 0; expected a mapping"),
    ],
)
def test_a_key_that_is_not_there_is_named_with_its_file(dotted: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        put(document(), dotted, 1, "t.json")
    assert str(caught.value) == message
    with pytest.raises(InputError):
        get(document(), dotted, "t.json")


def test_add_may_make_the_last_key_but_no_parent() -> None:
    made = document()
    add(made, "a.b.new", 7, "t.json")
    assert made["a"]["b"]["new"] == 7
    with pytest.raises(InputError, match="no such key"):
        add(made, "a.c.new", 7, "t.json")


def test_merge_takes_nested_and_dotted_keys() -> None:
    made = document()
    changes = {"a": {"b": {"size": 3}}, "a.b.other": 4, "a.+fresh": 5}
    merge(made, changes, "t", source="recipe", owned={})
    assert made["a"]["b"] == {"size": 3, "other": 4}
    assert made["a"]["fresh"] == 5


def test_merge_replaces_whole_mappings_where_told() -> None:
    made = document()
    merge(made, {"a": {"heads": {"y": 2}}}, "t", source="recipe", owned={}, whole=["a.heads"])
    assert made["a"]["heads"] == {"y": 2}


def test_merge_refuses_misspelt_keys_and_keys_that_follow_from_the_recipe() -> None:
    with pytest.raises(InputError, match="'other'"):
        merge(document(), {"a.b.othr": 1}, "t", source="recipe", owned={})
    with pytest.raises(InputError) as caught:
        merge(document(), {"a.b.size": 1}, "t", source="r.yaml", owned={"a.b.size": "training.n"})
    assert str(caught.value) == "r.yaml: sets 'a.b.size'; expected 'training.n' to be set instead"
