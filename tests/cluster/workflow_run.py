"""`snakemake --profile …` on a cluster, in a copy of the repository with tiny recipes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from perfproof.core.files import read_record
from perfproof.schema.cluster import RunEnding
from tests.cluster.processes import wait_until
from tests.cluster.snakemake_run import SnakemakeRun
from tests.cluster.testbed import Testbed
from tests.training.tiny_runs import TINY
from tests.workflow.tree import copy_repository

CLUSTER: dict[str, Any] = {
    "cluster": "test",
    "description": "the cluster of the tests",
    "launcher": "srun",
    "cpus_per_node": 4,
    "partition": "batch",
    "runtime_min": 10,
    "mem_mb": 2000,
    "env": {"OMP_NUM_THREADS": "1"},
    "health": {"timeout_s": 30},
}


class WorkflowRun(SnakemakeRun):
    """One invocation of the workflow. `tree` is the copy; its cluster file is `test`."""

    def __init__(self, cluster: Testbed, directory: Path, root: Path, **site: Any) -> None:
        """Make the copy. `site` are further keys of the cluster's file."""
        super().__init__(cluster, directory)
        self.tree = copy_repository(root, directory / "clone")
        self._write("clusters/test", CLUSTER | site)
        for model, recipe in TINY.items():
            self._write(f"recipes/{model}", {"model": model, "description": "tiny", **recipe})

    def _write(self, name: str, content: dict[str, Any]) -> None:
        path = self.tree / "config" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content))

    def lever(self, model: str, name: str, **keys: Any) -> str:
        """Add a lever to the model's catalog; its id."""
        path = self.tree / "config" / "levers" / f"{model}.yaml"
        catalog = yaml.safe_load(path.read_text())
        catalog["levers"].append({"id": name, "description": name, **keys})
        path.write_text(yaml.safe_dump(catalog))
        return name

    def perf_report(self, *targets: str, profile: str = "slurm-bounded", **settings: Any) -> None:
        """Start it, on `perf_report` where no targets are given."""
        chosen = {"cluster": "test", "nodes": 2} | settings
        options = [*(targets or ("perf_report",)), "--profile", profile]
        options += [f"--{profile}-jobname-prefix", self._prefix, "--latency-wait", "5"]
        options += ["--seconds-between-status-checks", "1"]
        if profile == "slurm-bounded":
            options += ["--slurm-bounded-grace", "2", "--slurm-bounded-lost", "5"]
        words = [f"{key}={value}" for key, value in chosen.items()]
        path = f"{self.directory}/bin:{Path(sys.executable).parent}:{self.cluster.env['PATH']}"
        with self._log.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "snakemake", *options, "--config", *words],
                cwd=self.tree,
                env=self.cluster.env | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run_dir(self, model: str = "hydragnn", trial: str = "baseline", nodes: int = 2) -> Path:
        """The directory of a run's files."""
        return self.tree / "results" / model / "trials" / trial / f"nodes-{nodes}" / "rep-0"

    def record(self, trial: str, nodes: int = 2) -> str:
        """The launch's target of a trial of the first model."""
        return str((self.run_dir(trial=trial, nodes=nodes) / "record.json").relative_to(self.tree))

    def wait_until(self, done: Callable[[], bool], limit_s: float, what: str) -> None:
        """Wait as long as it runs."""

        def seen() -> bool:
            assert self.runs(), self.log
            return done()

        wait_until(seen, limit_s, what)

    def ending(self, run_dir: Path) -> RunEnding:
        """How a run ended, as it is recorded."""
        return read_record(run_dir / "ending.json", RunEnding)
