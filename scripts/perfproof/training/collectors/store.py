"""The store of a run: a VictoriaMetrics server for as long as it is needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.victoria import INSTALL, Victoria, binary, victoria

FOLDER = "store"


def find_server(named: str = "") -> Path | None:
    """The server's program: the one that is `named`, else one that is installed, else None."""
    if not named:
        found = binary()
        return Path(found) if found else None
    found = shutil.which(os.path.expandvars(named))
    if found is None:
        raise InputError(named, "no such program", INSTALL, "victoria_metrics")
    return Path(found)


@contextmanager
def store(program: Path, folder: Path, *, other_hosts: bool = False) -> Iterator[Victoria]:
    """A server whose data lie in `folder` while it runs: the exported file is what stays."""
    place = folder / FOLDER
    try:
        with victoria(str(program), place, other_hosts=other_hosts) as server:
            yield server
    finally:
        shutil.rmtree(place, ignore_errors=True)
