"""Tiny recipes, and real runs of them through the launcher's command line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from perfproof.core.files import read_record, write_record
from perfproof.schema.run import LaunchRecord, Manifest
from perfproof.training.resolve import resolve

TINY: dict[str, dict[str, Any]] = {
    "hydragnn": {
        "training": {"dtype": "float64", "batch_size": 4, "epochs": 2, "batches_per_epoch": 3},
        "architecture": {"hidden": 8, "layers": 1, "radial": 4},
        "data": {"n_train": 64, "n_validate": 2, "atoms_min": 5, "atoms_max": 9},
    },
    "orbit2": {
        "training": {
            "batch_size": 4,
            "epochs": 2,
            "batches_per_epoch": 8,
            "validate_epochs": False,
        },
        "architecture": {"embed_dim": 8, "depth": 1, "heads": 2},
        "data": {"n_files": 8, "samples_per_file": 3, "height": 4, "width": 8, "scale": 2},
    },
}
LEVERS: list[dict[str, Any]] = [
    {"id": "batch_2", "set": {"training.batch_size": 2}},
    {"id": "checkpointing", "set": {"training.activation_checkpointing": True}},
    {
        "id": "compile_eager",
        "set": {"training.compile": True, "training.compile_backend": "aot_eager"},
    },
    {"id": "endless", "set": {"training.epochs": 100000}},
    {"id": "num_workers_2", "set": {"training.num_workers": 2}},
    {"id": "no_profile", "set": {"profile.enabled": False}},
    {"id": "ranks_2", "set": {"parallel.ranks_per_node": 2}},
    {"id": "ranks_3", "set": {"parallel.ranks_per_node": 3}, "conflicts": ["no_profile"]},
    {"id": "variable", "env": {"SOME_SWITCH": "on"}},
]


def write_config(root: Path, cluster: dict[str, Any] | None = None) -> Path:
    """A `config/` of tiny recipes with one cluster, `here`."""
    site = {
        "cluster": "here",
        "description": "this machine",
        "runtime_min": 5,
        "env": {"OMP_NUM_THREADS": "1"},
    }
    files = {"clusters/here": site | (cluster or {})}
    for model, recipe in TINY.items():
        files[f"recipes/{model}"] = {"model": model, "description": "tiny", **recipe}
        levers = [{"description": item["id"], **item} for item in LEVERS]
        files[f"levers/{model}"] = {"model": model, "levers": levers}
    for name, content in files.items():
        path = root / "config" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content))
    return root


@dataclass(frozen=True)
class Run:
    """A run that has ended, and what its launcher said."""

    directory: Path
    record_file: Path
    exit_code: int
    output: str

    @property
    def manifest(self) -> Manifest:
        return read_record(self.directory / "manifest.json", Manifest)

    @property
    def record(self) -> LaunchRecord:
        return read_record(self.record_file, LaunchRecord)

    def log(self, rank: int = 0) -> str:
        """One rank's log with carriage returns as line breaks."""
        text = (self.directory / f"log_rank{rank}.txt").read_text(encoding="utf-8")
        return text.replace("\r", "\n")


def start_launch(root: Path, folder: Path, model: str, trial: str) -> subprocess.Popen[str]:
    """The launch command line of a trial, started."""
    resolved = resolve(root, model=model, trial=trial, cluster="here", nodes=1)
    write_record(folder / "recipe.json", resolved)
    words = ["--root", str(root), "--recipe", str(folder / "recipe.json"), "--run-dir"]
    words += [str(folder / "run"), "--run-id", f"{model}/{trial}", "--record"]
    return subprocess.Popen(
        [sys.executable, "-m", "perfproof.training.launch", *words, str(folder / "record.json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end_launch(process: subprocess.Popen[str], folder: Path) -> Run:
    """Wait for a launch."""
    output, _ = process.communicate(timeout=300)
    return Run(folder / "run", folder / "record.json", process.returncode, output)


def edit(root: Path, name: str, **sections: dict[str, Any]) -> None:
    """Change keys of sections of one file of `config/`."""
    path = root / "config" / f"{name}.yaml"
    content = yaml.safe_load(path.read_text())
    for section, values in sections.items():
        content[section] = content.get(section, {}) | values
    path.write_text(yaml.safe_dump(content))
