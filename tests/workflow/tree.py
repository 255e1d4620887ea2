"""A working copy of the repository for one test, and Snakemake run inside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

TINY = {
    "epochs": 2,
    "batches_per_epoch": 5,
}


def copy_repository(root: Path, to: Path) -> Path:
    """Copy what git would clone (tracked and new files) into `to`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = root / name, to / name
        if not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
    return to


def shrink_recipes(tree: Path) -> None:
    """Make the embedded runs of a copy as short as they can be."""
    for path in sorted((tree / "config" / "recipes").glob("*.yaml")):
        recipe = yaml.safe_load(path.read_text())
        recipe.setdefault("training", {}).update(TINY)
        path.write_text(yaml.safe_dump(recipe, sort_keys=False))


def snakemake(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in `tree` as a person would, with this interpreter's environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SNAKEMAKE")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    # Children must import the copy's package; the Snakefile sees to it, not the caller.
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        ["snakemake", *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def planned(result: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Jobs by rule, from the statistics that a dry run prints."""
    lines = (result.stdout + result.stderr).splitlines()
    counts: dict[str, int] = {}
    inside = False
    for line in lines:
        words = line.split()
        if words[:2] == ["job", "count"]:
            inside, counts = True, {}
        elif inside and len(words) == 2 and words[1].isdigit():
            counts[words[0]] = int(words[1])
        elif inside and not words:
            inside = False
    counts.pop("total", None)
    return counts
