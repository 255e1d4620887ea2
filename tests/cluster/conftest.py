"""Fixtures: real SLURM clusters, and Snakemake runs on them that always end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.slurm_conf import AWKWARD_NAMES, Layout
from tests.cluster.snakemake_run import SnakemakeRun
from tests.cluster.testbed import Testbed, missing


def _cluster(layout: Layout) -> Iterator[Testbed]:
    if reason := missing(layout):
        pytest.skip(reason)
    with Testbed(layout) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def four_nodes() -> Iterator[Testbed]:
    """Four nodes, no accounting; the controller remembers jobs for an hour."""
    yield from _cluster(Layout(absent=AWKWARD_NAMES))


@pytest.fixture
def slurm(four_nodes: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    """The four nodes, idle, with this process's own SLURM commands going to them."""
    yield from _fresh(four_nodes, monkeypatch)


@pytest.fixture(scope="session")
def with_accounting() -> Iterator[Testbed]:
    """Two nodes with slurmdbd."""
    yield from _cluster(Layout(nodes=("a1", "a2"), accounting=True))


@pytest.fixture
def accounted(with_accounting: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    """The accounting cluster, idle, with this process's own SLURM commands going to it."""
    yield from _fresh(with_accounting, monkeypatch)


@pytest.fixture(scope="session")
def with_memory_limits() -> Iterator[Testbed]:
    """One node on which SLURM enforces what a job may use."""
    yield from _cluster(Layout(nodes=("a1",), memory_limits=True))


@pytest.fixture
def limited(with_memory_limits: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    """The node with limits, idle, with this process's own SLURM commands going to it."""
    yield from _fresh(with_memory_limits, monkeypatch)


def _fresh(cluster: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    cluster.reset()
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
    monkeypatch.setenv("PATH", cluster.env["PATH"])
    yield cluster


@pytest.fixture
def snakemake(slurm: Testbed, tmp_path: Path) -> Iterator[SnakemakeRun]:
    """A Snakemake run on the four nodes, in a directory of its own."""
    run = SnakemakeRun(slurm, tmp_path)
    yield run
    run.end()
