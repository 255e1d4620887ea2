"""Canonical JSON, digests, and errors that name file and key."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.core.errors import InputError
from perfproof.core.files import (
    canonical_json,
    digest_file,
    read_json,
    read_yaml,
    validate,
    write_text,
)
from perfproof.schema.config import Cluster, Recipe, Settings

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), _json, min_size=2))
def test_key_order_does_not_change_the_bytes(data: dict[str, object]) -> None:
    backwards = dict(reversed(list(data.items())))
    assert canonical_json(data) == canonical_json(backwards)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_non_finite_numbers_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": value})


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "x.json"
    write_text(target, "old")
    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(OSError, match="No space"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_digest_is_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "b").write_bytes(b"x" * 3_000_000)
    assert digest_file(tmp_path / "a") == digest_file(tmp_path / "b")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"{'a': 1}", b"1" * 5000, b"[" * 200_000],
    ids=["empty", "open", "not UTF-8", "single quotes", "huge number", "deep"],
)
def test_json_that_is_not_json_names_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.json.*expected a JSON file"):
        read_json(path)


def test_a_misspelt_key_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"config: modle: unknown key; expected 'model'"):
        validate({"modle": "x"}, Settings, "config")


def test_a_misspelt_nested_key_names_the_nearest() -> None:
    recipe = {"model": "m", "description": "d", "training": {"bach_size": 4}}
    with pytest.raises(InputError, match=r"r\.yaml: training\.bach_size: .*'batch_size'"):
        validate(recipe, Recipe, "r.yaml")


def test_a_misspelt_key_under_a_free_name_names_the_nearest() -> None:
    upstream = {"hydragnn": {"root": "/opt/x", "entry": "a.py", "pyton": "python3"}}
    cluster = {"cluster": "c", "description": "d", "upstream": upstream}
    with pytest.raises(InputError, match=r"upstream\.hydragnn\.pyton: .*'python'"):
        validate(cluster, Cluster, "c.yaml")


def test_a_wrong_type_shows_what_was_found() -> None:
    with pytest.raises(InputError, match=r"nodes: found 'many'; expected .*integer"):
        validate({"nodes": "many"}, Settings, "config")


def test_a_missing_key_is_named() -> None:
    with pytest.raises(InputError, match=r"description: found nothing"):
        validate({"model": "m"}, Recipe, "r.yaml")


@pytest.mark.parametrize("content", ["a: 2024-99-99", "a: [", "a: \t- b"])
def test_yaml_that_is_not_yaml_names_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=r"broken\.yaml: not YAML .*expected a YAML file"):
        read_yaml(path)


def test_a_directory_in_place_of_a_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Is a directory; expected a JSON file"):
        read_json(tmp_path)


def test_a_lone_surrogate_is_written_as_its_escape(tmp_path: Path) -> None:
    write_text(tmp_path / "x.json", canonical_json({"a": "\ud800"}))
    assert "ud800" in (tmp_path / "x.json").read_text(encoding="utf-8")
