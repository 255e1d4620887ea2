"""A rerun starts alone, in a clean directory, and keeps what earlier attempts left."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perfproof.core.errors import InputError

FOLDER = "attempts"
# Logs and benchmarks of workflow steps: the one that is running now writes there.
STAYS = frozenset({FOLDER, "steps"})


@contextmanager
def alone(run_dir: Path) -> Iterator[None]:
    """Hold the run; `InputError` where another launch of it is alive, also one left by a kill."""
    path = run_dir / "steps" / "launch.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            found = f"another launch of this run is alive ({stream.read().strip()})"
            raise InputError(run_dir, found, "its end; SIGTERM ends it in order") from None
        except OSError:
            # A file system without locks.
            pass
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
        yield


def set_aside(run_dir: Path, keep: Iterable[Path] = ()) -> int | None:
    """Move all files of `run_dir` to `attempts/<n>/` and return n; None where there were none.

    `keep` are files that belong to the new attempt although they lie in `run_dir`.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    kept = {path.resolve() for path in keep}
    old = [p for p in sorted(run_dir.iterdir()) if p.name not in STAYS and p.resolve() not in kept]
    if not old:
        return None
    number = 1 + max((_number(path) for path in (run_dir / FOLDER).glob("*")), default=0)
    target = run_dir / FOLDER / str(number)
    target.mkdir(parents=True)
    for path in old:
        path.rename(target / path.name)
    return number


def _number(path: Path) -> int:
    return int(path.name) if path.name.isdecimal() else 0
