"""The seam between the launcher and a workload: the command that each rank runs.

A workload is a package `perfproof.training.<workload>` with two functions:

* `command(resolved, cluster, run_dir) -> Command` prepares `run_dir` (the recipe is already there
  as `recipe.json`) and says what each rank runs. It raises `InputError` when the run cannot start.
* `finish(resolved, cluster, run_dir)` is called once the ranks have ended, however they ended. It
  may move what the trainer left elsewhere into `run_dir` (traces as
  `traces/rank<N>.pt.trace.json.gz`) and write `rank0.json` (a `RankReport`) for a trainer that
  knows nothing of it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from perfproof.schema.config import Cluster, ResolvedRecipe, Workload


@dataclass(frozen=True)
class Command:
    """One rank's command. All ranks run the same one and tell themselves apart by environment."""

    argv: tuple[str, ...]
    shown: tuple[str, ...] = ()
    """The same for the manifest: `python` for the interpreter, no path of this machine."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of every rank, over the recipe's."""
    rank_env: Mapping[str, str] = field(default_factory=dict)
    """Environment that differs by rank: `{rank}`, `{local_rank}` and `{world_size}` are filled in.
    RANK, LOCAL_RANK and WORLD_SIZE are always set."""
    cwd: Path | None = None
    """Working directory of the ranks; none: the launcher's."""


class WorkloadModule(Protocol):
    """What a workload package offers."""

    def command(self, resolved: ResolvedRecipe, cluster: Cluster, run_dir: Path) -> Command:
        """Prepare `run_dir` and say what each rank runs."""
        ...

    def finish(self, resolved: ResolvedRecipe, cluster: Cluster, run_dir: Path) -> None:
        """Gather what the trainer left, once its ranks have ended."""
        ...


def workload_module(workload: Workload) -> WorkloadModule:
    """The package of a workload, imported on demand."""
    found = importlib.import_module(f"perfproof.training.{workload.value}")
    return cast(WorkloadModule, found)


def interpreter() -> str:
    """The Python that runs this process."""
    return sys.executable or "python"
