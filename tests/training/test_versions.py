from __future__ import annotations

import subprocess
from pathlib import Path

import torch

from perfproof.schema.base import Reason
from perfproof.training.versions import git_state, versions


def git(directory: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    command = ["git", "-C", str(directory), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_commit_and_changes_of_a_clone(tmp_path: Path) -> None:
    assert git_state(tmp_path) == (None, None)
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert git_state(tmp_path) == (commit, False)
    (tmp_path / "a").write_text("2")
    assert git_state(tmp_path) == (commit, True)
    found = versions(tmp_path)
    assert (found.trainer_commit, found.trainer_dirty) == (commit, True)


def test_what_is_not_there_has_a_reason() -> None:
    found = versions()
    assert found.torch == str(torch.__version__)
    assert found.reasons["trainer_commit"] is Reason.NOT_APPLICABLE
    for name in ("cuda", "rocm", "driver"):
        assert (getattr(found, name) is None) == (name in found.reasons)
