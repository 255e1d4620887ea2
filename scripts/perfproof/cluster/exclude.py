"""The exclude list: nodes that no job should get, each on evidence about that node.

Several jobs may write the list at once, from several hosts: a change happens under a file lock and
replaces the file whole. Reading needs no lock.
"""

from __future__ import annotations

import fcntl
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

from perfproof.cluster import utc
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.schema.cluster import ExcludedNode, ExcludeList

EXCLUDE_FILE = Path("results/cluster/excluded_nodes.json")
NEVER: Literal["never"] = "never"

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
# The executor refuses text that looks like an option which it sets itself: `-J`, or `-c` before a
# blank. In a node's name that is a false alarm; shell quotes keep the two characters apart.
_LOOKS_LIKE_OPTION = re.compile(r"-J|--|-[A-Za-z]$")


def read(path: Path) -> ExcludeList:
    """The list at `path`; empty where there is no file."""
    return read_record(path, ExcludeList) if path.exists() else ExcludeList()


def active(listed: ExcludeList, now: datetime) -> list[ExcludedNode]:
    """The entries that have not expired."""
    return [n for n in listed.nodes if n.expires == NEVER or utc.parse(n.expires) > now]


def merged(listed: ExcludeList, found: ExcludedNode) -> ExcludeList:
    """The list with one more finding. A node found again keeps its first time and lasts longer."""
    others = [node for node in listed.nodes if node.name != found.name]
    known = next((node for node in listed.nodes if node.name == found.name), found)
    latest = max(known, found, key=lambda node: node.last_seen)
    expiries = (known.expires, found.expires)
    node = latest.model_copy(
        update={
            "first_seen": min(known.first_seen, found.first_seen),
            "expires": NEVER if NEVER in expiries else max(expiries),
        }
    )
    return ExcludeList(nodes=sorted([*others, node], key=lambda n: n.name))


def cleared(listed: ExcludeList, names: Collection[str]) -> ExcludeList:
    """The list without the named nodes."""
    return ExcludeList(nodes=[node for node in listed.nodes if node.name not in names])


def update(path: Path, change: Callable[[ExcludeList], ExcludeList]) -> ExcludeList:
    """Apply `change` to the list at `path`, alone among all writers, and return the new list."""
    with _locked(path):
        changed = change(read(path))
        write_record(path, changed)
    return changed


def add(path: Path, found: ExcludedNode) -> ExcludeList:
    """Put one finding on the list at `path`."""
    return update(path, lambda listed: merged(listed, found))


def node_name(name: str, where: Path | str) -> str:
    """`name` if it is the name of one node, else an `InputError`."""
    if not _NAME.fullmatch(name) or name.upper() == "ALL":
        expected = "the name of one node; `scontrol show hostnames` spells out a list"
        raise InputError(where, f"'{name}'", expected, "node")
    return name


def exclude_flag(
    path: Path,
    user_excludes: Iterable[str],
    now: datetime,
    known: Collection[str] | None = None,
) -> str:
    """One `--exclude=…` for a shell command line, or nothing where no node is excluded.

    sbatch takes the last of several such options, so the user's nodes are part of this one. It
    refuses a job over a name that the cluster does not have: `known` leaves all others out.
    """
    names = {node.name for node in active(read(path), now)}
    names |= {node_name(name, "excluded nodes") for name in user_excludes}
    if known is not None:
        names &= set(known)
    value = ",".join(sorted(names))
    return f"--exclude={_shell_word(value)}" if value else ""


def _shell_word(value: str) -> str:
    if not _LOOKS_LIKE_OPTION.search(value):
        return value
    apart = re.sub(r"-(?=[J-])", "-''", value)
    return f"'{apart}'"


@contextmanager
def _locked(path: Path, limit_s: float = 30.0) -> Iterator[None]:
    lock = path.with_name(f".{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + limit_s
    with lock.open("a") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    busy = f"locked by another process for {limit_s:.0f} s"
                    raise InputError(lock, busy, "a free lock") from None
                time.sleep(0.02)
        yield
