"""One complete run of each model through Snakemake, and what must hold of it afterwards."""

from __future__ import annotations

import json
import os
import random
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.workflow.tree import copy_repository, planned, shrink_recipes, snakemake

MODELS = ("hydragnn", "orbit2")
# Everything that analysis writes and that must be the same bytes wherever it is made again.
ANALYSED = (
    "inventory.json",
    "tables/trace_summary.json",
    "foms.json",
    "telemetry_summary.json",
    "claims/trace.json",
    "claims/telemetry.json",
    "verified/trace.json",
    "verified/telemetry.json",
    "combined_report.json",
    "combined_report.md",
    "combined_report.html",
)

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def ran(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which both models have run."""
    tree = copy_repository(root, tmp_path_factory.mktemp("ran") / "clone")
    shrink_recipes(tree)
    for model in MODELS:
        result = snakemake(tree, "perf_report", "--config", f"model={model}")
        assert result.returncode == 0, result.stdout + result.stderr
    return tree


def _run_directory(tree: Path, model: str) -> Path:
    return tree / "results" / model / "trials" / "baseline" / "nodes-1" / "rep-0"


def _load(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("model", MODELS)
def test_the_report_rests_on_a_completed_run(ran: Path, model: str) -> None:
    directory = _run_directory(ran, model)
    manifest = _load(directory / "manifest.json")
    report = _load(directory / "combined_report.json")
    assert manifest["state"] == "completed"
    assert manifest["exit_code"] == 0
    assert report["run"]["node_list"] == manifest["node_list"] != []
    assert report["foms"]["primary"]["value"] > 0
    assert report["claims"], "a CPU run has claims about CPU operators"
    assert {claim["verdict"] for claim in report["claims"]} == {"verified"}
    assert any("device timeline" in limit for limit in report["limits"])


@pytest.mark.parametrize("model", MODELS)
def test_profiled_steps_are_not_in_the_figures(ran: Path, model: str) -> None:
    foms = _load(_run_directory(ran, model) / "foms.json")
    assert foms["integrity"]["profiled_steps_excluded"] > 0
    assert foms["step_time_s"]["n"] == len(foms["steady_step_times_s"])


@pytest.mark.parametrize("model", MODELS)
def test_every_step_ended_with_its_status(ran: Path, model: str) -> None:
    logs = sorted((_run_directory(ran, model) / "steps").glob("*.log"))
    assert len(logs) >= 10
    for log in logs:
        assert log.read_text().splitlines()[-1].startswith("STATUS="), log


@pytest.mark.parametrize("model", MODELS)
def test_a_second_invocation_has_nothing_to_do(ran: Path, model: str) -> None:
    result = snakemake(ran, "-n", "perf_report", "--config", f"model={model}")
    assert planned(result) == {}, result.stdout


def test_a_copied_tree_launches_nothing_and_gives_the_same_bytes(ran: Path, tmp_path: Path) -> None:
    """New times everywhere, in random order, and no record of what Snakemake did before."""
    copy = tmp_path / "another" / "place"
    shutil.copytree(ran, copy, symlinks=True, ignore=shutil.ignore_patterns(".snakemake"))
    order = random.Random(0)
    for path in sorted(copy.rglob("*")):
        when = 1_700_000_000 + order.randrange(10**6)
        os.utime(path, (when, when), follow_symlinks=False)
    before = {model: _bytes(_run_directory(ran, model)) for model in MODELS}
    for model in MODELS:
        # Inventory is forced, so that all of the analysis is made again from the raw files.
        arguments = ("perf_report", "--config", f"model={model}", "--forcerun", "inventory")
        assert "launch" not in planned(snakemake(copy, "-n", *arguments))
        result = snakemake(copy, *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "rule launch:" not in result.stdout + result.stderr
    assert {model: _bytes(_run_directory(copy, model)) for model in MODELS} == before


def _bytes(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in ANALYSED}


def test_a_changed_recipe_is_a_new_measurement(ran: Path, tmp_path: Path) -> None:
    copy = tmp_path / "clone"
    shutil.copytree(ran, copy, symlinks=True)
    recipe = copy / "config" / "recipes" / "orbit2.yaml"
    recipe.write_text(recipe.read_text().replace("batches_per_epoch: 5", "batches_per_epoch: 6"))
    plan = planned(snakemake(copy, "-n", "perf_report", "--config", "model=orbit2"))
    assert plan["launch"] == 1


def test_a_run_can_be_analysed_again_as_recorded_artifacts(ran: Path) -> None:
    source = _run_directory(ran, "orbit2")
    before = _bytes(source)
    result = snakemake(
        ran, "perf_report", "--config", f"artifacts={source.relative_to(ran)}", "name=again"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    again = _load(ran / "results" / "artifacts" / "again" / "foms.json")
    original = json.loads(before["foms.json"])
    again.pop("run_id"), original.pop("run_id")
    assert again == original
    assert _bytes(source) == before


def test_snakemake_can_build_its_own_report(ran: Path) -> None:
    result = snakemake(ran, "--report", "report.zip", "perf_report")
    assert result.returncode == 0, result.stdout + result.stderr
    names = zipfile.ZipFile(ran / "report.zip").namelist()
    assert any(name.endswith("combined_report.html") for name in names), names
