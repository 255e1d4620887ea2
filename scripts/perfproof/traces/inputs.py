"""Traces named on a command line: files, or directories that hold some."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.schema.run import Inventory, Role
from perfproof.traces.decode import EXPECTED

INVENTORY = "inventory.json"
_ENDINGS = (".json", ".json.gz")


def trace_files(path: Path) -> list[tuple[Path, str]]:
    """Each trace at `path` with its label: the file, or those of a directory, sorted.

    A directory with an `inventory.json` gives the traces listed there; another one all files named
    `….json` or `….json.gz` in it and below that hold `traceEvents`.
    """
    if path.is_file():
        return [(path, path.name)]
    if not path.is_dir():
        raise InputError(path, "no such file or directory", EXPECTED)
    if (path / INVENTORY).is_file():
        inventory = read_record(path / INVENTORY, Inventory)
        listed = [artifact.path for artifact in inventory.of(Role.TRACE)]
        found = [(_under(path, inventory, name), name) for name in listed]
    else:
        files = (file for file in path.rglob("*") if file.name.endswith(_ENDINGS))
        found = [(file, file.relative_to(path).as_posix()) for file in sorted(files)]
    if not found:
        raise InputError(path, "no trace in this directory", EXPECTED)
    return found


def all_traces(paths: Iterable[Path]) -> list[tuple[Path, str]]:
    """The traces of several arguments; one named twice counts once."""
    found = {file.resolve(): (file, label) for path in paths for file, label in trace_files(path)}
    return list(found.values())


def _under(path: Path, inventory: Inventory, name: str) -> Path:
    here = path / name
    return here if here.is_file() else Path(inventory.root) / name
