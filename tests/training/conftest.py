"""Fixtures of the training stage."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perfproof.schema.config import ResolvedRecipe
from perfproof.training.resolve import resolve
from tests.training.tiny_runs import Run, end_launch, start_launch, write_config


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration of tiny recipes."""
    return write_config(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def launched(
    tiny_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Run]:
    """Runs by model and trial, each made once a session."""
    made: dict[tuple[str, str], Run] = {}

    def run(model: str, trial: str) -> Run:
        if (model, trial) not in made:
            folder = tmp_path_factory.mktemp(model)
            made[model, trial] = end_launch(start_launch(tiny_root, folder, model, trial), folder)
        return made[model, trial]

    return run


@pytest.fixture
def cancelled(tiny_root: Path, tmp_path: Path) -> Run:
    """A run whose launcher got SIGTERM while ranks were training."""
    process = start_launch(tiny_root, tmp_path, "orbit2", "endless")
    log = tmp_path / "run" / "log_rank0.txt"
    deadline = time.monotonic() + 120
    report = log.with_name("rank0.json")
    while "tic4-tic1" not in (log.read_text() if log.is_file() else "") or not report.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    return end_launch(process, tmp_path)


@pytest.fixture(scope="session")
def resolved_pair(tiny_root: Path) -> ResolvedRecipe:
    """A resolved recipe of two ranks."""
    return resolve(tiny_root, model="hydragnn", trial="ranks_2", cluster="here", nodes=1)
