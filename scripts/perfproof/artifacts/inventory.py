"""Write `inventory.json`: the one input of all analysis.

Every file of the run is listed with role, rank, size and BLAKE3, so that a changed byte in a raw
file changes the inventory and re-runs what depends on it; nothing downstream looks at mtimes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfproof.artifacts.discover import discover, rank_of
from perfproof.core import step
from perfproof.core.files import digest_file, write_record
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Artifact, Inventory, Role

_PER_RANK = frozenset({Role.LOG, Role.TRACE})


def take_inventory(root: Path, run_id: str) -> Inventory:
    """The inventory of the run in `root` (a directory, or one file)."""
    base = root.parent if root.is_file() else root
    found = discover(root)
    artifacts, problems = [], list(found.problems)
    for path, role in found.files:
        taken = _artifact(path, base, role)
        if isinstance(taken, Problem):
            problems.append(taken)
            continue
        artifacts.append(taken)
        if taken.size_bytes == 0:
            what = "empty file; expected the output of a run"
            problems.append(Problem(where=taken.path, what=what))
    return Inventory(run_id=run_id, root=str(base), artifacts=artifacts, problems=problems)


def _artifact(path: Path, base: Path, role: Role) -> Artifact | Problem:
    name = path.relative_to(base).as_posix()
    if not name.isascii() and "\udc80" <= max(name) <= "\udcff":
        shown = name.encode("utf-8", "backslashreplace").decode()
        return Problem(where=shown, what="its name is not UTF-8; expected one that can be written")
    try:
        size, digest = path.stat().st_size, digest_file(path)
    except OSError as fault:
        return Problem(where=name, what=f"{fault.strerror}; expected a file that can be read")
    rank = rank_of(path) if role in _PER_RANK else None
    missing = Reason.NOT_RECORDED if role in _PER_RANK else Reason.NOT_APPLICABLE
    return Artifact(
        path=name,
        role=role,
        rank=rank,
        size_bytes=size,
        blake3=digest,
        reasons={} if rank is not None else {"rank": missing},
    )


def _step(arguments: argparse.Namespace) -> step.Status:
    inventory = take_inventory(arguments.root, arguments.run_id)
    write_record(arguments.out, inventory)
    problems = [f"{arguments.root / p.where}: {p.what}" for p in inventory.problems]
    return step.ok_or_partial(problems, f"{len(inventory.artifacts)} files")


def main() -> None:
    """Command line."""
    parser = step.parser("List the files that a run left, with their digests.")
    parser.add_argument("--root", type=Path, required=True, help="directory or file of the run")
    parser.add_argument("--run-id", required=True, help="name of the run in all records")
    parser.add_argument("--out", type=Path, required=True, help="inventory.json to write")
    step.run(_step, parser.parse_args())


if __name__ == "__main__":
    main()
