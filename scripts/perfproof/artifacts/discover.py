"""Find the files of a run in a directory, whoever left them, and say what each one is."""

from __future__ import annotations

import re
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.schema.run import Role

# First match wins; a name that matches nothing is not part of the run. Files that analysis
# writes beside a run (foms.json, tables/, …) match nothing on purpose.
_ROLES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (Role.MANIFEST, re.compile(r"^manifest\.json$")),
    (Role.META, re.compile(r"^(meta|rank0)\.json$")),
    (Role.NODE_PROBE, re.compile(r"^node_health_probe\.txt$")),
    (Role.TELEMETRY, re.compile(r"^telemetry.*\.(csv|jsonl)(\.gz)?$")),
    (Role.CONFIG, re.compile(r"^(config|recipe|gfm_mlip_profile)\.(json|ya?ml)$")),
    (Role.LOG, re.compile(r"^(log_rank\d+|train|run|.*-train-.*|slurm-\d+)\.(txt|log|out)$")),
    (Role.TRACE, re.compile(r".*\.json(\.gz)?$")),
)
_NOT_TRACES = re.compile(
    r"^(foms|inventory|record|combined_report|telemetry_summary|comparison|index)\.json$",
    re.IGNORECASE,
)
_ANALYSIS_DIRECTORIES = frozenset({"tables", "claims", "verified", "steps", "attempts"})
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


def discover(root: Path) -> list[tuple[Path, Role]]:
    """Files of the run in `root` (a directory, or one file), sorted by path.

    Raises InputError when there is nothing, or nothing that a run leaves.
    """
    if not root.exists():
        raise InputError(root, "no such file or directory", "what a run left: log, traces, …")
    files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if _inside(p, root))
    found = _one_log_a_rank([(p, role) for p in files if (role := role_of(p)) is not None])
    if not any(role in (Role.LOG, Role.TRACE, Role.TELEMETRY) for _, role in found):
        raise InputError(
            root,
            f"nothing to analyse among {len(files)} files",
            "a log (log_rank0.txt), a trace (*.json[.gz]) or telemetry (telemetry.csv)",
        )
    return found


def _one_log_a_rank(found: list[tuple[Path, Role]]) -> list[tuple[Path, Role]]:
    """Where ranks have logs of their own, a merged or logger's copy would count lines twice."""
    if not any(role is Role.LOG and rank_of(path) is not None for path, role in found):
        return found
    return [
        (path, Role.OTHER if role is Role.LOG and rank_of(path) is None else role)
        for path, role in found
    ]


def _inside(path: Path, root: Path) -> bool:
    return path.is_file() and _ANALYSIS_DIRECTORIES.isdisjoint(path.relative_to(root).parts[:-1])
