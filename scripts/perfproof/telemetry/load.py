"""The run's telemetry file, whichever it left, as series in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfproof.core.errors import InputError
from perfproof.core.files import digest_file
from perfproof.schema.base import Problem
from perfproof.schema.run import Artifact, Inventory, Role
from perfproof.telemetry.derive import complete
from perfproof.telemetry.export import read_export
from perfproof.telemetry.names import ALIASES, JOB_INFO, PRESENT, THROTTLED
from perfproof.telemetry.nvml import from_table
from perfproof.telemetry.queries import metric_names
from perfproof.telemetry.read import read_telemetry
from perfproof.telemetry.store import Series, Store

_ALSO = frozenset(
    {JOB_INFO, PRESENT, THROTTLED, "rocm_vram_total_bytes", "rocm_vram_used_percentage", *ALIASES}
)


@dataclass(frozen=True)
class Chosen:
    """The one file that is analysed, and a line on each other one."""

    artifact: Artifact | None
    problems: list[Problem]


def choose(inventory: Inventory) -> Chosen:
    """The export where there is one, else the first table."""
    artifacts = inventory.of(Role.TELEMETRY)
    exports = [artifact for artifact in artifacts if is_export(artifact.path)]
    first = next(iter([*exports, *artifacts]), None)
    problems = [
        Problem(where=other.path, what=f"not read; expected one telemetry file, {first.path}")
        for other in artifacts
        if first is not None and other is not first
    ]
    return Chosen(first, problems)


def is_export(path: str) -> bool:
    """Whether a file is an export of series, by its name."""
    return path.removesuffix(".gz").endswith(".jsonl")


def load(inventory: Inventory, artifact: Artifact, job_ms: tuple[int, int]) -> Store:
    """Its series, clipped to the run. Raises InputError where it is not the file that was listed.

    A table comes without a job of its own: all of its samples of other times are counted, too.
    """
    path = Path(inventory.root) / artifact.path
    if path.is_file() and digest_file(path) != artifact.blake3:
        found = "changed since the inventory was taken, so not used"
        raise InputError(path, found, "the same bytes")
    if is_export(artifact.path):
        return complete(read_export(path, job_ms, metric_names() | _ALSO))
    return clipped(from_table(read_telemetry(path)), job_ms)


def clipped(store: Store, job_ms: tuple[int, int]) -> Store:
    """Without what lies before the run's start or after its end."""
    for name, every in store.series.items():
        for place, one in enumerate(every):
            where = one.between(*job_ms)
            store.outside += len(one.times_ms) - (where.stop - where.start)
            every[place] = Series(one.labels, one.times_ms[where], one.values[where])
        store.series[name] = every
    return store


def cards(store: Store) -> list[tuple[str, str]]:
    """Node and card of every device with a series, in order of number."""
    names = {
        (one.labels.get("instance", ""), one.labels["card"])
        for every in store.series.values()
        for one in every
        if "card" in one.labels
    }
    return sorted(names, key=lambda name: (name[0], not name[1].isdecimal(), _number(name[1])))


def _number(card: str) -> tuple[int, str]:
    return (int(card) if card.isdecimal() else 0, card)


def sample_times(store: Store, card: tuple[str, str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """All times at which something of the card was sampled, ms."""
    times = [
        one.times_ms
        for every in store.series.values()
        for one in every
        if (one.labels.get("instance", ""), one.labels.get("card")) == card
    ]
    return np.unique(np.concatenate(times)) if times else np.empty(0, np.int64)


def jobs(store: Store) -> set[str]:
    """Ids of the jobs that the file knows."""
    return {one.labels.get("jobid", "") for one in store.select(JOB_INFO)} - {""}
