"""The preflight as a command, for its rule and for what runs before the first submission."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from perfproof.cluster.preflight_checks.software import EXECUTORS
from perfproof.schema.config import Settings

_RECORDS = "results/cluster"


def preflight_command(
    settings: Settings, root: Path, executor: str = "", status_command: str = ""
) -> str:
    """Resolve the recipe that is asked for, and ask whether the cluster can take it.

    A profile has the name of its executor, so that `executor` says which one is in use.
    """
    recipe = f"{_RECORDS}/preflight_recipe.json"
    asked = {"root": root, "model": settings.model, "trial": settings.trial}
    asked |= {"nodes": settings.nodes, "cluster": settings.cluster, "out": recipe}
    asked |= {"workload": settings.workload}
    profile = executor if executor in EXECUTORS else EXECUTORS[0]
    answered = {"root": root, "recipe": recipe, "profile": profile}
    answered |= {"status-command": status_command} if status_command else {}
    answered |= {"out": f"{_RECORDS}/preflight.json"}
    resolve = _call("perfproof.training.resolve", asked)
    return f"{resolve} && {_call('perfproof.cluster.preflight', answered)}"


def before_submission(workflow: Any, settings: Settings, root: Path) -> None:
    """Do the preflight if this invocation of Snakemake submits launches; end it when it fails."""
    executor = workflow.executor_plugin.name
    if not settings.preflight or executor not in EXECUTORS:
        return
    jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name == "launch"]
    if not jobs:
        return
    asked = largest(settings, [job.wildcards_dict for job in jobs])
    status_command = getattr(workflow.executor_settings, "status_command", None) or ""
    command = preflight_command(asked, root, executor, status_command)
    paths = [str(root / "scripts"), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    sys.stderr.flush()
    if subprocess.run(["/bin/sh", "-c", f"({command}) 1>&2"], env=env).returncode:
        lines = "the preflight failed: nothing was submitted; its lines above say what to do"
        raise WorkflowError(f"{lines} (--config preflight=false submits all the same)")


def largest(settings: Settings, launches: Iterable[Mapping[str, str]]) -> Settings:
    """The settings of the launch on most nodes, by its wildcards: what it can have, all can."""
    asked = [settings.model_copy(update=_launch_keys(wildcards)) for wildcards in launches]
    return max(asked, key=lambda one: one.nodes, default=settings)


def _launch_keys(wildcards: Mapping[str, str]) -> dict[str, str | int]:
    keys: dict[str, str | int] = {k: wildcards[k] for k in ("model", "trial") if k in wildcards}
    return keys | ({"nodes": int(wildcards["nodes"])} if "nodes" in wildcards else {})


def _call(module: str, options: Mapping[str, object]) -> str:
    words = [f"--{name}={shlex.quote(str(value))}" for name, value in options.items()]
    return " ".join([shlex.quote(sys.executable), "-m", module, *words])
