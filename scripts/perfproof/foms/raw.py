"""Raw files as the inventory lists them: a file that has changed since is another run's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perfproof.core.files import digest_file
from perfproof.schema.base import Problem
from perfproof.schema.run import Artifact, Inventory


def changed(artifact: Artifact, inventory: Inventory) -> bool:
    """True when the file is not the one in the inventory; an empty digest was never taken."""
    path = Path(inventory.root) / artifact.path
    return bool(artifact.blake3) and digest_file(path) != artifact.blake3


def changed_problem(artifact: Artifact) -> Problem:
    """The line that names a changed file."""
    what = "changed since the inventory was taken, so not used; expected the same bytes"
    return Problem(where=artifact.path, what=what)


def unlike(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """The artifacts without copies of one another."""
    first: dict[str, Artifact] = {}
    for artifact in artifacts:
        first.setdefault(artifact.blake3 or artifact.path, artifact)
    return list(first.values())
