"""What a killed Snakemake leaves of a run on this machine, and a second one beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from perfproof.core.files import read_record
from perfproof.schema.run import Manifest, State
from tests.cluster.processes import kill, running, wait_until
from tests.workflow.tree import copy_repository, shrink_recipes

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

TARGET = "results/hydragnn/trials/endless/nodes-1/rep-0/record.json"


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A copy of the repository with a trial that does not end by itself."""
    copy = copy_repository(root, tmp_path / "clone")
    shrink_recipes(copy)
    path = copy / "config" / "levers" / "hydragnn.yaml"
    catalog = yaml.safe_load(path.read_text())
    endless = {"id": "endless", "description": "d", "set": {"training.epochs": 100000}}
    catalog["levers"].append(endless)
    path.write_text(yaml.safe_dump(catalog))
    return copy


def snakemake(tree: Path, *words: str) -> subprocess.Popen[str]:
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", *words],
        cwd=tree,
        env={name: value for name, value in env.items() if name != "PYTHONPATH"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def launches(tree: Path) -> list[psutil.Process]:
    """The launchers and ranks of the copy that are alive."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.cwd() == str(tree) and process.name().startswith("python")
            if ours and running(process) and "perfproof.training" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_an_orphan_is_not_joined_by_a_second_run(tree: Path) -> None:
    folder = tree / Path(TARGET).parent
    first = snakemake(tree, TARGET)
    try:
        trains = (folder / "rank0.json").is_file
        wait_until(lambda: trains() or first.poll() is not None, 90, "the first step")
        first.kill()
        first.wait()
        before = {process.pid for process in launches(tree)}
        assert before
        assert snakemake(tree, "--unlock").wait(60) == 0
        said, _ = snakemake(tree, TARGET).communicate(timeout=60)
        assert f"{TARGET.removesuffix('/record.json')}: another launch of this run is alive" in said
        assert {process.pid for process in launches(tree)} == before
        assert read_record(folder / "manifest.json", Manifest).state is State.RUNNING
        # Its launcher is killed too: nothing is left, and the way is free.
        (launcher,) = [p for p in launches(tree) if "perfproof.training.launch" in p.cmdline()]
        launcher.kill()
        wait_until(lambda: not launches(tree), 10, "the end of the ranks")
    finally:
        first.kill()
        first.communicate()
        kill(launches(tree))
