"""Fixtures that every test folder shares."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Recorded runs and traces beside the repository; tests that need them skip without."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no recorded data at {SHARED_DATA} (tests on recorded runs need it)")
    return SHARED_DATA
