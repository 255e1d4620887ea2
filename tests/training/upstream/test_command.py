"""What a run is started with: configuration, plan, arguments, environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfproof.core.errors import InputError
from perfproof.training.upstream import command, finish
from perfproof.training.upstream.host.plan import read_plan
from perfproof.training.workload import Command
from tests.training.upstream import fakes

HYDRAGNN_SITE = {"entry": "examples/fake/fake.py", "config_template": "examples/fake/fake.json"}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def hydragnn(run_dir: Path, site: Any = None, **recipe: Any) -> Command:
    root = fakes.hydragnn_clone(run_dir.parent / "clone")
    cluster = fakes.cluster("hydragnn", root, **HYDRAGNN_SITE | (site or {}))
    return command(fakes.resolved("hydragnn", **recipe), cluster, run_dir)


def orbit2(run_dir: Path, site: Any = None, **recipe: Any) -> Command:
    root = fakes.orbit2_clone(run_dir.parent / "clone")
    cluster = fakes.cluster("orbit2", root, **site or {})
    return command(fakes.resolved("orbit2", **recipe), cluster, run_dir)


def hydragnn_config(run_dir: Path) -> Any:
    return json.loads((run_dir / "config.json").read_text())["NeuralNetwork"]


def orbit2_config(run_dir: Path) -> Any:
    return yaml.safe_load((run_dir / "config.yaml").read_text())


def test_hydragnn_profiles_an_epoch_of_its_own(run_dir: Path) -> None:
    hydragnn(run_dir, training={"dtype": "float64", "learning_rate": 0.5})
    config = hydragnn_config(run_dir)
    assert config["Profile"] == {"enable": 1, "target_epoch": 2}
    training = config["Training"]
    assert (training["num_epoch"], training["batch_size"]) == (3, 2)
    assert training["precision"] == "fp64"
    assert training["Optimizer"] == {"type": "AdamW", "learning_rate": 0.5}
    assert not training["EarlyStopping"]
    assert not training["Checkpoint"]
    plan = read_plan(run_dir / "host.plan")
    assert (plan.epochs, plan.profiled_epoch, plan.window) == (3, 2, None)


def test_hydragnn_without_a_profile(run_dir: Path) -> None:
    hydragnn(run_dir, profile={"enabled": False}, training={"batches_per_epoch": 3})
    config = hydragnn_config(run_dir)
    assert config["Profile"]["enable"] == 0
    assert config["Training"]["num_epoch"] == 2
    assert read_plan(run_dir / "host.plan").profiled_epoch is None


def test_orbit2_trains_one_epoch_less_than_it_is_told(run_dir: Path) -> None:
    orbit2(run_dir, profile={"wait": 2, "warmup": 1, "active": 4})
    config = orbit2_config(run_dir)
    assert config["trainer"]["max_epochs"] == 2 + 1 + 1
    assert config["trainer"]["data_type"] == "float32"
    plan = read_plan(run_dir / "host.plan")
    assert (plan.epochs, plan.profiled_epoch) == (3, 2)
    assert plan.window is not None
    assert plan.window.steps == 7


def test_orbit2_passes_over_every_data_set_each_epoch(run_dir: Path) -> None:
    folders = {"B": "/b", "A": "/a"}
    orbit2(run_dir, site={"config": {"data.low_res_dir": folders}})
    assert list(orbit2_config(run_dir)["data"]["low_res_dir"]) == ["B", "A"]
    plan = read_plan(run_dir / "host.plan")
    assert (plan.epochs, plan.profiled_epoch) == (6, 5)


@pytest.mark.parametrize(
    ("parallel", "expected"),
    [
        ({}, (8, 1, 1)),
        ({"simple_ddp": 2}, (4, 2, 1)),
        ({"fsdp": 2}, (2, 4, 1)),
        ({"tensor_par": 4}, (2, 1, 4)),
        ({"fsdp": 1, "simple_ddp": 4, "tensor_par": 2}, (1, 4, 2)),
    ],
)
def test_layout_of_ranks(run_dir: Path, parallel: dict[str, int], expected: Any) -> None:
    orbit2(run_dir, ranks=8, parallel=parallel)
    sizes = orbit2_config(run_dir)["parallelism"]
    assert (sizes["fsdp"], sizes["simple_ddp"], sizes["tensor_par"]) == expected


@pytest.mark.parametrize(
    ("recipe", "key"),
    [
        ({"ranks": 8, "parallel": {"fsdp": 3}}, "parallel"),
        ({"ranks": 8, "parallel": {"fsdp": 16}}, "parallel"),
        ({"ranks": 3, "parallel": {"tensor_par": 3}}, "parallel.tensor_par"),
        ({"training": {"dtype": "float64"}}, ""),
        ({"training": {"persistent_workers": True}}, "training.persistent_workers"),
        ({"training": {"batches_per_epoch": 4}}, "training.batches_per_epoch"),
    ],
)
def test_what_orbit2_cannot_do_is_refused(run_dir: Path, recipe: Any, key: str) -> None:
    with pytest.raises(InputError) as caught:
        orbit2(run_dir, **recipe)
    assert caught.value.key == key
    assert caught.value.where == "config/recipes/orbit2.yaml"


def test_hydragnns_profiler_needs_eleven_batches(run_dir: Path) -> None:
    with pytest.raises(InputError, match="11 or more"):
        hydragnn(run_dir, training={"batches_per_epoch": 10})


def test_a_profile_at_top_level_would_be_ignored(run_dir: Path) -> None:
    with pytest.raises(InputError) as caught:
        hydragnn(run_dir, site={"config": {"+Profile": {"enable": 1}}})
    assert caught.value.key in ("Profile", "Profile.enable")


def test_a_template_that_lacks_a_key_is_named(run_dir: Path) -> None:
    root = fakes.hydragnn_clone(run_dir.parent / "clone")
    template = root / "examples/fake/fake.json"
    template.write_text(template.read_text().replace("batch_size", "batchsize"))
    cluster = fakes.cluster("hydragnn", root, **HYDRAGNN_SITE)
    with pytest.raises(InputError) as caught:
        command(fakes.resolved("hydragnn"), cluster, run_dir)
    assert caught.value.where == str(template)
    assert caught.value.key == "NeuralNetwork.Training.batch_size"
    assert "batchsize" in caught.value.expected


def test_recipe_keys_come_after_the_sites(run_dir: Path) -> None:
    site = {"config": {"NeuralNetwork.Architecture.hidden_dim": 32}}
    upstream = {"NeuralNetwork": {"Architecture": {"hidden_dim": 16, "+equivariance": True}}}
    hydragnn(run_dir, site=site, upstream=upstream)
    architecture = hydragnn_config(run_dir)["Architecture"]
    assert architecture["hidden_dim"] == 16
    assert architecture["equivariance"] is True


def test_the_manifest_shows_no_path_of_this_machine(run_dir: Path) -> None:
    site = {"arguments": ["--inputfile", "{config}", "--precision", "{precision}"]}
    made = hydragnn(run_dir, site=site, training={"dtype": "bfloat16"})
    assert made.argv[-4:-1] == (
        "--inputfile",
        str(run_dir / "config.json"),
        "--precision",
    )
    assert made.argv[-1] == "bf16"
    assert not any(str(run_dir.parent) in word for word in made.shown)
    assert "examples/fake/fake.py" in made.shown
    assert str(run_dir.parent) not in (run_dir / "host.plan").read_text()


def test_paths_of_a_site_may_hold_variables(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_DATA", "/data/of/this/site")
    site = {
        "arguments": ["{config}", "--datadir", "$SITE_DATA"],
        "config": {"data.low_res_dir": {"PRISM": "$SITE_DATA/low"}},
    }
    made = orbit2(run_dir, site=site)
    assert made.argv[-1] == "/data/of/this/site"
    assert made.shown[-1] == "$SITE_DATA"
    assert orbit2_config(run_dir)["data"]["low_res_dir"] == {"PRISM": "/data/of/this/site/low"}


def test_the_interpreter_may_be_a_container(run_dir: Path) -> None:
    made = orbit2(run_dir, site={"python": "apptainer exec --rocm image.sif python3"})
    assert made.argv[:5] == ("apptainer", "exec", "--rocm", "image.sif", "python3")


def test_environment_follows_from_the_recipe(run_dir: Path) -> None:
    made = hydragnn(
        run_dir,
        training={"num_workers": 3, "validate_epochs": False},
        env={"PYTHONPATH": "/before", "HYDRAGNN_AGGR_BACKEND": ""},
    )
    assert made.env["HYDRAGNN_MAX_NUM_BATCH"] == "12"
    assert made.env["HYDRAGNN_NUM_WORKERS"] == "3"
    assert made.env["HYDRAGNN_VALTEST"] == "0"
    assert made.env["PYTHONPATH"].split(os.pathsep)[-1] == "/before"
    assert made.rank_env["OMPI_COMM_WORLD_RANK"] == "{rank}"
    assert made.cwd == run_dir / "trainer"
    assert made.cwd.is_dir()


def test_two_sources_of_one_setting_must_agree(run_dir: Path) -> None:
    with pytest.raises(InputError) as caught:
        hydragnn(run_dir, env={"HYDRAGNN_NUM_WORKERS": "7"})
    assert caught.value.key == "env.HYDRAGNN_NUM_WORKERS"
    assert hydragnn(run_dir, env={"HYDRAGNN_NUM_WORKERS": "0"}).env["HYDRAGNN_NUM_WORKERS"] == "0"


def test_a_model_of_another_name_says_its_trainer(run_dir: Path) -> None:
    root = fakes.orbit2_clone(run_dir.parent / "clone")
    with pytest.raises(InputError, match="unknown trainer 'climate'"):
        command(fakes.resolved("climate"), fakes.cluster("climate", root), run_dir)
    site = fakes.cluster("climate", root, trainer="orbit2")
    assert "SLURM_PROCID" in command(fakes.resolved("climate"), site, run_dir).rank_env


def test_finish_removes_links_to_checkpoints_that_were_not_written(run_dir: Path) -> None:
    work = run_dir / "trainer/logs"
    work.mkdir(parents=True)
    (work / "kept.txt").write_text("x")
    (work / "good").symlink_to("kept.txt")
    (work / "dangling.pk").symlink_to("gone.pk")
    finish(fakes.resolved("hydragnn"), fakes.cluster("hydragnn", run_dir), run_dir)
    assert sorted(path.name for path in work.iterdir()) == ["good", "kept.txt"]
