"""What the Snakefile asks: targets, input functions, settings. All logic of the rules is here.

Input functions take Snakemake's `wildcards` and return file names; they read configuration and
directory listings only, so that building the DAG stays cheap and has no side effect.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from perfproof.artifacts.discover import discover
from perfproof.core import config, layout
from perfproof.core.errors import InputError
from perfproof.core.files import digest_record
from perfproof.schema.config import Cluster, ResolvedRecipe, Settings
from perfproof.training.resolve import resolve


def plan(snakemake_config: Mapping[str, Any], root: str, cores: int | None) -> Plan:
    """The invocation's plan; bad input ends Snakemake with one line instead of a traceback."""
    try:
        return Plan(snakemake_config, Path(root), cores)
    except InputError as fault:
        raise WorkflowError(str(fault)) from None


class Plan:
    """One invocation: its settings, and the file names that follow from them."""

    def __init__(self, snakemake_config: Mapping[str, Any], root: Path, cores: int | None) -> None:
        """Check the configuration; `root` is the repository, `cores` what Snakemake may use."""
        self.root = root
        self.settings: Settings = config.load_settings(snakemake_config, self.root)
        self.run: str = layout.run_id(self.settings)
        self.cluster: Cluster = config.load_cluster(self.root, self.settings.cluster)
        self.launches: bool = self.settings.artifacts is None
        self._cores = cores
        self._check_what_it_needs()

    def _check_what_it_needs(self) -> None:
        """Meet bad input before any job starts."""
        if self.launches:
            self._resolve(self.settings.model, self.settings.trial, self.settings.nodes)
            return
        discover(Path(self.settings.artifacts or ""))
        layout.check_name_is_free(self.settings, Path("results"))

    @property
    def shell_prefix(self) -> str:
        """Strict shell; this checkout's package and interpreter first, wherever the job runs.

        A prefix replaces Snakemake's own strict mode, without which `step | tee log` never fails.
        """
        scripts = shlex.quote(str(self.root / "scripts"))
        binaries = shlex.quote(str(Path(sys.executable).parent))
        # Snakemake formats the prefix once more: braces for the shell are doubled for it.
        earlier = "${{PYTHONPATH:+:$PYTHONPATH}}"
        return f"set -euo pipefail; export PYTHONPATH={scripts}{earlier} PATH={binaries}:$PATH; "

    def evidence(self, wildcards: Any) -> list[str]:
        """Files that a run's inventory rests on: the launch record, or the recorded files."""
        if wildcards.run != self.run or self.launches:
            return [f"results/{wildcards.run}/record.json"]
        return [str(path) for path, _ in discover(Path(self.settings.artifacts or ""))]

    def evidence_root(self, wildcards: Any) -> str:
        """Directory (or file) that holds a run's raw files."""
        if wildcards.run != self.run or self.launches:
            return f"results/{wildcards.run}"
        return self.settings.artifacts or ""

    def recipe_digest(self, wildcards: Any) -> str:
        """Digest of what a trial means today: a changed recipe is a different measurement."""
        return digest_record(self._resolve(wildcards.model, wildcards.trial, int(wildcards.nodes)))

    def _resolve(self, model: str, trial: str, nodes: int) -> ResolvedRecipe:
        return resolve(
            root=self.root,
            model=model,
            trial=trial,
            cluster=self.settings.cluster,
            nodes=nodes,
            workload=self.settings.workload,
        )

    def lever_catalog(self, wildcards: Any) -> list[str]:
        """The catalog that claims of this run may cite: of its model, where the model is known."""
        model = wildcards.run.split("/")[0]
        path = self.root / "config" / "levers" / f"{model}.yaml"
        return [str(path)] if path.is_file() else []

    def launch_threads(self, _: Any) -> int:
        """A run has the machine to itself: other jobs beside it would be in its numbers."""
        return self.cluster.cpus_per_node or self._cores or 1
