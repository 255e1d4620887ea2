"""Is the program that is called `omnistat-usermode` the one that collects telemetry?

A package of the same name on PyPI is something else: a name proves nothing, what the program
offers does.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.command import run_bounded
from perfproof.core.errors import InputError

PROGRAM = "omnistat-usermode"
INSTALL = (
    "Omnistat in an environment of its own: git clone https://github.com/ROCm/omnistat && "
    "pip install ./omnistat (not `pip install omnistat`: that package is unrelated)"
)
_NEEDED = ("--configfile", "--startexporters", "--stopexporters", "--interval", "--pushinterval")
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Omnistat:
    """The program, and whether it can run without a resource manager."""

    program: Path
    has_local_jobs: bool


def find_omnistat(named: str = "") -> Omnistat:
    """The program that is `named`, or on the search path. Raises InputError for anything else."""
    asked = os.path.expandvars(named) or PROGRAM
    found = shutil.which(asked)
    if found is None:
        raise InputError(asked, "no such program", INSTALL, "omnistat")
    offered = _help(Path(found))
    missing = [option for option in _NEEDED if option not in offered]
    if missing:
        told = f"it offers no {missing[0]}, so it is not the collector"
        raise InputError(found, told, INSTALL, "omnistat")
    return Omnistat(Path(found), "--localjob" in offered)


def _help(program: Path) -> str:
    words = [str(program), "--help"]
    try:
        done = run_bounded(words, Path.cwd(), os.environ, _TIMEOUT_S)
    except OSError as fault:
        raise InputError(program, f"does not run: {fault}", INSTALL, "omnistat") from None
    if done.code is None:
        told = f"does not run: no end of --help after {_TIMEOUT_S:.0f} s"
        raise InputError(program, told, INSTALL, "omnistat")
    return done.stdout if done.code == 0 else ""
