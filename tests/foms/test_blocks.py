"""Blocks of whole lines."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.foms import blocks
from perfproof.foms.blocks import LineBlocks


def write(tmp_path: Path, data: bytes) -> LineBlocks:
    path = tmp_path / "log"
    path.write_bytes(data)
    return LineBlocks(path)


def test_carriage_returns_are_line_breaks_and_blocks_end_at_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8)
    read = write(tmp_path, b"abc\rdef\nghi\r\njkl\n")
    parts = list(read)
    assert b"".join(parts) == b"abc\ndef\nghi\n\njkl\n"
    assert all(part.endswith(b"\n") for part in parts)
    assert len(parts) > 1
    assert (read.unfinished, read.nul_bytes, read.size_bytes) == (False, 0, 17)


def test_a_line_that_was_cut_off_is_not_passed_on(tmp_path: Path) -> None:
    read = write(tmp_path, b"whole\nmy rank 0. tic4-tic1 in 0.2")
    assert list(read) == [b"whole\n"]
    assert read.unfinished


def test_data_without_a_line_break_does_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 16)
    read = write(tmp_path, b"ab\n" + b"x" * 100 + b"\ncd\n")
    assert b"".join(read) == b"ab\ncd\n"
    assert (read.skipped_bytes, read.unfinished) == (101, False)


def test_a_hole_in_a_file_is_a_line_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 16)
    read = write(tmp_path, b"ab" + bytes(100) + b"cd\n")
    assert b"".join(read).split() == [b"ab", b"cd"]
    assert (read.nul_bytes, read.skipped_bytes) == (100, 0)


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=200), st.integers(1, 20))
def test_whole_lines_pass_unless_too_long(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", size)
        read = write(tmp_path_factory.mktemp("blocks"), data)
        joined = b"".join(read)
    *whole, last = re.split(rb"[\r\n\0]", data)
    passed = joined.split(b"\n")[:-1]
    dropped = Counter(whole) - Counter(passed)
    assert not Counter(passed) - Counter(whole)
    assert all(len(text) >= size or not text for text in dropped)
    assert read.unfinished == bool(last.strip()) or len(last) > size
