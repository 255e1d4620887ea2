"""Find the files of a run in a directory, whoever left them, and say what each one is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.schema.base import Problem
from perfproof.schema.run import Role

# First match wins; a name that matches nothing is not part of the run. Files that analysis
# writes beside a run (foms.json, tables/, …) match nothing on purpose.
_ROLES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (Role.MANIFEST, re.compile(r"^manifest\.json$")),
    (Role.META, re.compile(r"^(meta|rank0)\.json$")),
    (Role.NODE_PROBE, re.compile(r"^node_health(_probe\.txt|\.json)$")),
    (Role.ENDING, re.compile(r"^ending\.json$")),
    (Role.TELEMETRY, re.compile(r"^(telemetry.*\.(csv|jsonl)|export\.jsonl)(\.gz)?$")),
    (Role.CONFIG, re.compile(r"^(config|recipe|gfm_mlip_profile)\.(json|ya?ml)$")),
    (Role.LOG, re.compile(r"^(log_rank\d+|train|run|.*-train-.*|slurm-\d+)\.(txt|log|out)$")),
    (Role.TRACE, re.compile(r".*\.json(\.gz)?$")),
)
_NOT_TRACES = re.compile(
    r"^(foms|inventory|record|combined_report|telemetry_summary|comparison|index)\.json$",
    re.IGNORECASE,
)
_ANALYSIS_DIRECTORIES = frozenset(
    {"tables", "tracelens", "claims", "authors", "verified", "probe", "steps", "attempts"}
)
_RANK = re.compile(r"rank[-_]?(\d+)")


def role_of(path: Path) -> Role | None:
    """The role a file plays by its name; None: not part of a run."""
    name = path.name
    if path.is_dir() or name.startswith("."):
        return None
    if _NOT_TRACES.match(name) and path.parent.name != "traces":
        return None
    return next((role for role, pattern in _ROLES if pattern.match(name)), None)


def rank_of(path: Path) -> int | None:
    """The rank in a file's name (`rank0`, `rank-3`, `rank_12`); None where it has none."""
    found = _RANK.search(path.name)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class Found:
    """Files of one run with their roles, sorted by path; and what could not be looked at."""

    files: list[tuple[Path, Role]]
    problems: list[Problem]


def discover(root: Path) -> Found:
    """Files of the run in `root` (a directory, or one file).

    Raises InputError when there is nothing that a run leaves, or what several runs left: figures
    of one would be taken for the other's.
    """
    if not root.exists():
        raise InputError(root, "no such file or directory", "what a run left: log, traces, …")
    problems: list[Problem] = []
    paths = [root] if root.is_file() else sorted(_walk(root, problems))
    found = _one_log_a_rank([(p, role) for p in paths if (role := role_of(p)) is not None])
    if not any(role in (Role.LOG, Role.TRACE, Role.TELEMETRY) for _, role in found):
        raise InputError(
            root,
            f"nothing to analyse among {len(paths)} files",
            "a log (log_rank0.txt), a trace (*.json[.gz]) or telemetry (telemetry.csv)",
        )
    _check_one_run(root, found)
    return Found(found, problems)


def _walk(root: Path, problems: list[Problem]) -> Iterator[Path]:
    """All files below `root`, through links to directories; each directory once."""

    def note(fault: OSError) -> None:
        where = os.path.relpath(fault.filename, root)
        problems.append(Problem(where=where, what="cannot be opened; expected a readable folder"))

    seen: set[tuple[int, int]] = set()
    for folder, below, names in os.walk(root, followlinks=True, onerror=note):
        status = Path(folder).stat()
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            below.clear()
            continue
        seen.add(identity)
        below[:] = [name for name in below if name not in _ANALYSIS_DIRECTORIES]
        yield from (Path(folder, name) for name in names)


def _check_one_run(root: Path, found: list[tuple[Path, Role]]) -> None:
    first: dict[tuple[Role, int | None], Path] = {}
    for path, role in found:
        rank = rank_of(path) if role is Role.LOG else None
        if role is not Role.MANIFEST and rank is None:
            continue
        other = first.setdefault((role, rank), path)
        if other != path:
            pair = f"{other.relative_to(root)} and {path.relative_to(root)}"
            raise InputError(root, f"several runs ({pair})", "the directory of one run")


def _one_log_a_rank(found: list[tuple[Path, Role]]) -> list[tuple[Path, Role]]:
    """Where ranks have logs of their own, a merged or logger's copy would count lines twice."""
    if not any(role is Role.LOG and rank_of(path) is not None for path, role in found):
        return found
    return [
        (path, Role.OTHER if role is Role.LOG and rank_of(path) is None else role)
        for path, role in found
    ]
