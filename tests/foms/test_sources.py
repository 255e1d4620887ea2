"""What surrounds a log."""

from __future__ import annotations

import json
from pathlib import Path

from perfproof.foms.sources import Sources, read_sources
from tests.foms.logs import hydragnn_config, inventory, manifest, orbit2_config


def read(root: Path, **files: str) -> Sources:
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (root / f"{stem}.{suffix}").write_text(text)
    return read_sources(inventory(root))


def test_hydragnn_configuration(tmp_path: Path) -> None:
    config = json.loads(hydragnn_config(200, epochs=3))
    config["NeuralNetwork"]["Profile"] = {"enable": 1, "target_epoch": 2}
    found = read(tmp_path, config_json=json.dumps(config))
    assert (found.batch_size, found.dtype, found.epochs) == (200, "float64", 3)
    assert found.profiled_epoch == 2


def test_a_profiler_that_is_off_profiles_no_epoch(tmp_path: Path) -> None:
    config = {"NeuralNetwork": {"Training": {}, "Profile": {"enable": 0, "target_epoch": 2}}}
    assert read(tmp_path, config_json=json.dumps(config)).profiled_epoch is None


def test_orbit2_configuration(tmp_path: Path) -> None:
    text = orbit2_config(8, fsdp=4).replace("tensor_par: 1", "tensor_par: 2")
    found = read(tmp_path, config_yaml=text)
    assert (found.batch_size, found.dtype) == (8, "bfloat16")
    assert (found.config_ranks, found.config_data_ranks) == (8, 4)


def test_manifest_and_launch_record(tmp_path: Path) -> None:
    found = read(
        tmp_path, manifest_json=manifest().model_dump_json(), meta_json='{"ranks": 2, "model": "m"}'
    )
    assert found.manifest == manifest()
    assert (found.meta_ranks, found.meta_model) == (2, "m")
    assert not found.problems


def test_each_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        manifest_json='{"run_id": "x", "stat": 1}',
        config_yaml="a: [1",
        config_json="\x00",
        meta_json="[]",
    )
    assert [problem.where for problem in found.problems] == [
        "manifest.json",
        "config.json",
        "config.yaml",
    ]
    assert all("\n" not in problem.what for problem in found.problems)


def test_configurations_of_odd_shapes_say_nothing(tmp_path: Path) -> None:
    for text in (
        '{"trainer": 3}',
        '{"NeuralNetwork": []}',
        "[]",
        '{"trainer": {"batch_size": true}}',
    ):
        assert read(tmp_path, config_json=text).batch_size is None
