"""From the files of a run to its result; real runs of the embedded trainer among them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.artifacts.inventory import take_inventory
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.foms.assemble import foms_of
from perfproof.levers.observe import observe, read_seen
from perfproof.schema.cluster import Cause, EndState
from perfproof.schema.loop import Measurement, Result
from perfproof.schema.run import State
from perfproof.schema.traces import RankTrace, Table, TraceSummary
from perfproof.traces.tables import analyse
from tests.foms.logs import Step
from tests.levers.play import spec
from tests.levers.runs import edm, ending, manifest
from tests.training.tiny_runs import Run, edit, end_launch, start_launch, write_config

SPEC = spec()


def step(module: str, *words: object) -> str:
    """A step's command line; its last line."""
    command = [sys.executable, "-m", f"perfproof.{module}", *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def analysed(run: Run) -> Path:
    """The run's directory with what the workflow puts beside the evidence."""
    here = run.directory
    inventory = take_inventory(here, "run")
    summary = analyse(inventory, here, here)
    write_record(here / "tables" / "trace_summary.json", summary)
    write_record(here / "foms.json", foms_of(inventory, summary))
    return here


@pytest.fixture(scope="module")
def config(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny recipes with the shipped catalogs."""
    here = write_config(tmp_path_factory.mktemp("config"))
    shutil.copytree(root / "config" / "levers", here / "config" / "levers", dirs_exist_ok=True)
    edit(here, "recipes/orbit2", data={"n_files": 1, "samples_per_file": 32})
    return here


@pytest.fixture(scope="module")
def runs(config: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Real runs: the baseline and a lever."""
    folder = tmp_path_factory.mktemp("runs")
    trials = {"plain": "baseline", "bf16": "bf16"}
    begun = {
        name: start_launch(config, folder / name, "orbit2", trial) for name, trial in trials.items()
    }
    return {name: analysed(end_launch(run, folder / name)) for name, run in begun.items()}


def catalog(config: Path) -> Path:
    return config / "config" / "levers" / "orbit2.yaml"


def test_a_real_baseline(config: Path, runs: dict[str, Path]) -> None:
    asked = Measurement(trial="baseline", rep=0)
    found = observe(runs["plain"], asked, SPEC, catalog(config))
    assert found.ending == "measured"
    assert found.value is not None
    assert found.value > 0
    assert found.differs == []
    assert found.proof == []
    assert found.fingerprint.arch == "cpu"
    assert found.fingerprint.batch_size == 4
    assert found.fingerprint.torch is not None
    assert "channels_last" in found.ineligible
    assert "bf16" not in found.ineligible


def test_a_real_lever_shows_its_effect_and_changes_only_what_it_means_to(
    config: Path, runs: dict[str, Path]
) -> None:
    asked = Measurement(trial="bf16", rep=0)
    found = observe(runs["bf16"], asked, SPEC, catalog(config), runs["plain"])
    assert found.differs == []
    assert [(finding.lever, finding.seen) for finding in found.proof] == [("bf16", True)]
    assert found.fingerprint.dtype == "bfloat16"
    assert found.measurement == asked


def test_command_line(config: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    words = ["--levers", catalog(config), "--rep", 0, "--out", tmp_path / "result.json"]
    words += ["--against", runs["plain"], "--run-dir", runs["bf16"]]
    last = step("levers.observe", "--trial", "bf16", *words)
    assert last.startswith("STATUS=ok; reason=throughput_samples_per_s ")
    asked = Measurement(trial="bf16", rep=0)
    expected = observe(runs["bf16"], asked, SPEC, catalog(config), runs["plain"])
    assert read_record(tmp_path / "result.json", Result) == expected


def test_a_run_of_another_trial_is_refused(config: Path, runs: dict[str, Path]) -> None:
    asked = Measurement(trial="sdpa_math", rep=0)
    with pytest.raises(InputError, match="trial 'bf16'; expected 'sdpa_math'"):
        observe(runs["bf16"], asked, SPEC, catalog(config))


def written(folder: Path, state: State = State.COMPLETED) -> Path:
    """A run's directory with a manifest and a log."""
    write_record(folder / "manifest.json", manifest(state=state))
    (folder / "log_rank0.txt").write_text("epoch  0\n")
    return folder


def test_a_failed_run_is_read_from_what_it_left(root: Path, tmp_path: Path) -> None:
    here = written(tmp_path / "run", State.FAILED)
    write_record(here / "ending.json", ending(EndState.FAILED, Cause.DEVICE_MEMORY))
    levers = root / "config" / "levers" / "orbit2.yaml"
    asked = Measurement(trial="baseline", rep=0)
    assert observe(here, asked, SPEC, levers).cause == "device_memory"
    (here / "ending.json").unlink()
    assert observe(here, asked, SPEC, levers).cause == "unknown"
    (here / "log_rank0.txt").write_text("")
    assert observe(here, asked, SPEC, levers).cause == "launcher"
    words = ["--levers", levers, "--trial", "baseline", "--rep", 0, "--out", tmp_path / "r.json"]
    last = step("levers.observe", "--run-dir", here, *words)
    assert last == "STATUS=partial; reason=launcher: failed before any rank wrote a line"


def test_earlier_tries_cost_node_hours(root: Path, tmp_path: Path) -> None:
    here = written(tmp_path / "run")
    write_record(here / "foms.json", edm(tmp_path / "logs", [Step(8.0, 4096)] * 4))
    for number in ("1", "2"):
        written(here / "attempts" / number, State.NODE_FAULT)
    levers = root / "config" / "levers" / "orbit2.yaml"
    found = observe(here, Measurement(trial="baseline", rep=0), SPEC, levers)
    assert found.node_hours == pytest.approx(3 * 600 / 3600)


def test_without_a_manifest_there_is_nothing_to_observe(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.json"):
        read_seen(tmp_path)


def test_kernel_names_are_those_of_the_lowest_rank(tmp_path: Path) -> None:
    here = written(tmp_path)
    assert read_seen(here).kernels is None
    (here / "tables").mkdir()
    (here / "tables" / "kernels.csv").write_text(
        'Parent cpu_op,Kernel name,Kernel stream\naten::mm,"gemm<1, 2>",7\naten::mm,copy,7\n'
    )
    table = Table(file="tables/kernels.csv", rows=2, blake3="0")
    nulls = ("world_size", "device_name", "window_start_ns", "window_duration_ns", "base_time_ns")
    trace = RankTrace.model_validate(
        {
            "rank": 0,
            "file": "trace.json",
            "events": 2,
            "gpu_events": 2,
            "unlinked_gpu_events": 0,
            "steps": [],
            "window_kind": "empty",
            "tables": {"kernel_summary": table},
            "findings": [],
            **dict.fromkeys(nulls),
            "reasons": dict.fromkeys(nulls, "not_recorded"),
        }
    )
    write_record(here / "tables" / "trace_summary.json", TraceSummary(run_id="run", ranks=[trace]))
    assert read_seen(here).kernels == {"gemm<1, 2>", "copy"}
