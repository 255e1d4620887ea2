"""The optimizer loop as people run it: Snakemake, real runs, budgets, STOP, copies, replay."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from tests.workflow.tree import planned, snakemake

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
LEVERS = "levers=[num_workers_2,null_unread_variable]"
SETTINGS = ("model=orbit2", LEVERS, "loop=mine")
DECISION = 'decision={"baseline_runs":3,"confirmation_pairs":2}'
FOLDER = Path("results/orbit2/loops/mine")


def loop(tree: Path, budget: int, *more: str) -> str:
    ran = snakemake(
        tree, "optimizer_loop", *more, "--config", *SETTINGS, DECISION, f"budget={budget}"
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def launches(tree: Path) -> set[str]:
    return {str(p.relative_to(tree)) for p in tree.glob("results/**/record.json")}


def test_a_loop_from_its_first_run_to_its_replay(tree: Path) -> None:
    """One loop, since each run trains for real: its budgets, its copies and what it leaves."""
    # Four runs are kept for a confirmation, so that of eight four explore.
    loop(tree, 8)
    first = launches(tree)
    assert len(first) == 4
    left = tree / FOLDER / "runs-8"
    names = {"decisions.json", "foms.csv", "foms.png", "story.md", "best.yaml"}
    assert names <= {path.name for path in left.iterdir()}
    assert json.loads((left / "decisions.json").read_text())["detectable"] > 0
    with (left / "foms.csv").open() as stream:
        assert [row["trial"] for row in csv.DictReader(stream)][:3] == ["baseline"] * 3
    best = yaml.safe_load((left / "best.yaml").read_text())
    assert best["model"] == "orbit2"
    assert "Nothing to be done" in loop(tree, 8)

    copy = moved(tree)
    assert "launch" not in planned(snakemake(copy, "-n", "optimizer_loop", *config(8)))
    loop(copy, 8)
    assert launches(copy) == first

    loop(copy, 9)
    assert len(launches(copy) - first) == 1
    assert (copy / FOLDER / "runs-9" / "story.md").is_file()

    (copy / FOLDER / "STOP").touch()
    before = launches(copy)
    loop(copy, 20)
    assert launches(copy) == before
    assert (copy / FOLDER / "stopped-5" / "story.md").is_file()

    other = DECISION.replace("}", ',"power":0.9}')
    refused = snakemake(copy, "optimizer_loop", "--config", *SETTINGS, other, "budget=20")
    assert refused.returncode != 0
    assert "a loop with other decision" in refused.stdout + refused.stderr

    replayed = snakemake(copy, "loop_replay", "--config", *SETTINGS[:1], "loop=mine")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    (found,) = copy.glob("results/orbit2/replays/mine-*/replay.json")
    replay = json.loads(found.read_text())
    assert replay["same_policy"]
    assert replay["used"] == 5
    assert launches(copy) == before


def config(budget: int) -> tuple[str, ...]:
    return ("--config", *SETTINGS, DECISION, f"budget={budget}")


def moved(tree: Path) -> Path:
    """The tree copied as people copy: other place, new times, no Snakemake metadata."""
    copy = tree.parent / "moved"
    shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".snakemake"))
    for number, path in enumerate(sorted(copy.glob("results/**/*"), reverse=True)):
        os.utime(path, (1.7e9 + number, 1.7e9 + number))
    return copy
