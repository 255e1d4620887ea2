"""What the Snakefile asks: targets, input functions, settings. All logic of the rules is here.

Input functions take Snakemake's `wildcards` and return file names; they read configuration and
directory listings only, so that building the DAG stays cheap and has no side effect.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from perfproof.artifacts.discover import discover
from perfproof.claims.authors import plan as authors
from perfproof.cluster import exclude, utc
from perfproof.cluster.scheduler import known_nodes
from perfproof.core import config, layout, resources
from perfproof.core.errors import InputError, unknown
from perfproof.core.files import digest_bytes, digest_record
from perfproof.schema.config import Cluster, ResolvedRecipe, Settings
from perfproof.tracelens.find import choose
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
        self.launches: bool = not self.settings.artifacts
        self._cores = cores
        # The optimizer loop's own wish for a run's nodes (levers/chain.py).
        self.pin: Callable[[Any], str] = lambda _: ""
        self._check_what_it_needs()

    def _check_what_it_needs(self) -> None:
        """Meet bad input before any job starts."""
        chosen, results = self.settings, Path("results")
        authors.check(chosen)
        if chosen.trace_backend == "tracelens":
            choose(chosen.trace_backend)
        if chosen.levers:
            known = [lever.id for lever in config.load_levers(self.root, chosen.model).levers]
            for name in set(chosen.levers) - set(known):
                raise unknown("config", "lever", name, known)
        if not self.launches:
            discover(Path(chosen.artifacts))
            layout.check_name_is_free(chosen, results)
            return
        if chosen.name:
            raise InputError("config", f"'{chosen.name}' without artifacts", "artifacts=…", "name")
        resolved = self._resolve(chosen.model, chosen.trial, chosen.nodes)
        layout.check_same_cluster(chosen, resolved.workload.value, results)

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
        # Snakemake reads braces in file names as wildcards; doubled ones are braces.
        names = [str(path) for path, _ in discover(Path(self.settings.artifacts)).files]
        return [name.replace("{", "{{").replace("}", "}}") for name in names]

    def evidence_state(self, wildcards: Any) -> str:
        """Digest of names, sizes and times of recorded files: a replaced file is looked at again.

        Snakemake alone takes a file for unchanged when its replacement is older.
        """
        if wildcards.run != self.run or self.launches:
            return ""
        files = [(path, path.stat()) for path, _ in discover(Path(self.settings.artifacts)).files]
        lines = [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in files]
        return digest_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))

    def evidence_root(self, wildcards: Any) -> str:
        """Directory (or file) that holds a run's raw files."""
        if wildcards.run != self.run or self.launches:
            return f"results/{wildcards.run}"
        return self.settings.artifacts

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
        """Catalogs that claims of this run may cite: its model's, or all where a file knows it."""
        model = "*" if wildcards.run.startswith("artifacts/") else wildcards.run.split("/")[0]
        # Relative: a tree that moved is not a changed input.
        catalogs = (self.root / "config" / "levers").glob(f"{model}.yaml")
        return sorted(os.path.relpath(path) for path in catalogs)

    def launch_threads(self, _: Any) -> int:
        """A run has the machine to itself: other jobs beside it would be in its numbers.

        Under srun the request says what a rank gets; the step that waits for it needs one core.
        """
        if self.cluster.launcher == "srun":
            return 1
        return self.cluster.cpus_per_node or self._cores or 1

    def launch_resource(self, name: str) -> Callable[[Any], int | str | None]:
        """The resource `name` of the launch rule, as a function of its wildcards.

        Snakemake asks again at each attempt, so that a retry stays away from nodes found bad since.
        """

        def value(wildcards: Any) -> int | str | None:
            resolved = self._resolve(wildcards.model, wildcards.trial, int(wildcards.nodes))
            # --exclude comes last: what follows a node's name must not be a blank.
            wishes = [self.pin(wildcards), self._exclude_flag()] if name == "slurm_extra" else []
            flag = " ".join(filter(None, wishes))
            found: int | str | None = getattr(resources.request(self.cluster, resolved, flag), name)
            return found

        return value

    @property
    def on_error(self) -> str:
        """What an invocation that failed runs last: how its launches ended, and why."""
        return "python -m perfproof.cluster.settle --results results" if self.launches else "true"

    def _exclude_flag(self) -> str:
        flag = exclude.exclude_flag(exclude.EXCLUDE_FILE, self.cluster.exclude, utc.now())
        if not flag:
            return ""
        # Asked only now: it takes SLURM's answer, and most lists are empty.
        known = known_nodes()
        return exclude.exclude_flag(exclude.EXCLUDE_FILE, self.cluster.exclude, utc.now(), known)

    def local_rules(self, rules: Iterable[str]) -> list[str]:
        """Those of the `rules` that run where Snakemake runs: all but launches, unless asked."""
        if self.cluster.analysis == "jobs":
            return []
        return [name for name in rules if name != "launch"]
