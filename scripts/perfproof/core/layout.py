"""Names of files: which directory a run or an analysis lives in. Pure, used by the Snakefile."""

from __future__ import annotations

import re
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import read_json
from perfproof.schema.config import Settings

TRIAL_RUN = r"[a-z0-9_.-]+/trials/[A-Za-z0-9_.+-]+/nodes-\d+/rep-\d+"
RECORDED_RUN = r"artifacts/[a-z0-9_.-]+"


def run_id(settings: Settings) -> str:
    """Where the analysis lives below `results/`: `<model>/trials/…` or `artifacts/<name>`."""
    if settings.artifacts:
        return f"artifacts/{artifact_name(settings)}"
    return trial_run(settings.model, settings.trial, settings.nodes, settings.repetition)


def trial_run(model: str, trial: str, nodes: int, repetition: int) -> str:
    """The run id of one repetition of a trial; `TRIAL_RUN` matches it."""
    return f"{model}/trials/{trial}/nodes-{nodes}/rep-{repetition}"


def artifact_name(settings: Settings) -> str:
    """`name` if given, else the last component of `artifacts` in lower case, suffixes off."""
    if settings.name:
        return settings.name
    last = Path(settings.artifacts).resolve().name
    stem = re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", last).lower()
    return re.sub(r"[^a-z0-9_.-]+", "-", stem).strip("-.") or "unnamed"


def check_name_is_free(settings: Settings, results: Path) -> None:
    """Refuse to mix two recordings under one name: the older results would be taken for new."""
    owner = results / run_id(settings) / "source.txt"
    if owner.is_file() and owner.read_text(encoding="utf-8").strip() != settings.artifacts:
        raise InputError(
            owner,
            f"the name belongs to {owner.read_text(encoding='utf-8').strip()}",
            f"another one for {settings.artifacts}: --config name=…",
            "name",
        )


def check_same_cluster(settings: Settings, workload: str, results: Path) -> None:
    """Refuse to replace a run of another cluster or workload: the path says neither."""
    path = results / run_id(settings) / "manifest.json"
    if not path.is_file():
        return
    resolved = read_json(path).get("resolved", {})
    asked = {"cluster": settings.cluster, "workload": workload}
    for key, value in asked.items():
        if resolved.get(key) != value:
            expected = f"'{value}'; move results/ away, or take another repetition"
            raise InputError(path, f"a run with {key} '{resolved.get(key)}'", expected, key)


def trial_of(run: str) -> dict[str, str]:
    """The parts of a trial's run id: model, trial, nodes, rep."""
    model, _, trial, nodes, rep = run.split("/")
    return {
        "model": model,
        "trial": trial,
        "nodes": nodes.removeprefix("nodes-"),
        "rep": rep.removeprefix("rep-"),
    }
