"""A rerun starts in a clean directory and keeps what earlier attempts left."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FOLDER = "attempts"
# Logs and benchmarks of workflow steps: the one that is running now writes there.
_STAYS = frozenset({FOLDER, "steps"})


def set_aside(run_dir: Path, keep: Iterable[Path] = ()) -> int | None:
    """Move all files of `run_dir` to `attempts/<n>/` and return n; None where there were none.

    `keep` are files that belong to the new attempt although they lie in `run_dir`.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    kept = {path.resolve() for path in keep}
    old = [p for p in sorted(run_dir.iterdir()) if p.name not in _STAYS and p.resolve() not in kept]
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
