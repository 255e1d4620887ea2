from __future__ import annotations

from pathlib import Path

from perfproof.training.probe import node_line, shared_directories


def test_a_healthy_node(tmp_path: Path) -> None:
    shared = shared_directories(tmp_path, [str(tmp_path)])
    assert node_line("n1", tmp_path, shared) == "NODE_HEALTH n1 home=OK shared=OK"
    assert list(tmp_path.iterdir()) == []


def test_broken_directories_are_named_with_their_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    shared = shared_directories(tmp_path, [str(tmp_path / "gone"), str(file)])
    assert node_line("n1", tmp_path / "home", shared) == (
        "NODE_HEALTH n1 home=FAIL shared=FAIL "
        "failed=home:ENOENT,shared_paths[0]:ENOENT,shared_paths[1]:ENOTDIR"
    )


def test_home_alone_does_not_fail_the_shared_test(tmp_path: Path) -> None:
    line = node_line("n1", tmp_path / "home", shared_directories(tmp_path, []))
    assert line == "NODE_HEALTH n1 home=FAIL shared=OK failed=home:ENOENT"
