"""Working copies shared by the tests of one module or session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.tree import copy_repository, shrink_recipes


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A fresh copy of the repository with short embedded runs."""
    copy = copy_repository(root, tmp_path / "clone")
    shrink_recipes(copy)
    return copy


@pytest.fixture(scope="session")
def shared_tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for tests that only plan."""
    return copy_repository(root, tmp_path_factory.mktemp("plan") / "clone")
