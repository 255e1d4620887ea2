"""Levers on single-rank training in this process: each has its effect, none changes the data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from perfproof.core.files import read_record, write_record
from perfproof.schema.run import RankReport
from perfproof.training.embedded.context import Context
from perfproof.training.embedded.hydragnn import train as hydragnn
from perfproof.training.embedded.orbit2 import train as orbit2
from perfproof.training.identity import Identity
from perfproof.training.resolve import resolve
from tests.training.tiny_runs import edit, write_config

TRAINERS = {"hydragnn": hydragnn.train, "orbit2": orbit2.train}


def trained(model: str, folder: Path, **training: Any) -> RankReport:
    """Train in this process without profiler; what rank 0 reports."""
    root = write_config(folder)
    edit(root, f"recipes/{model}", training=training, profile={"enabled": False})
    resolved = resolve(root, model=model, trial="baseline", cluster="here", nodes=1)
    run_dir = folder / "run"
    write_record(run_dir / "recipe.json", resolved)
    TRAINERS[model](Context(resolved, run_dir, Identity(0, 0, 1), torch.device("cpu")))
    return read_record(run_dir / "rank0.json", RankReport)


def losses(log: str) -> list[str]:
    return re.findall(r"(?:loss=|  loss  tensor\()([0-9.]+)", log)


@pytest.mark.parametrize("model", ["hydragnn", "orbit2"])
def test_same_seed_same_losses(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(model, tmp_path / "a")
    first = losses(capsys.readouterr().out)
    trained(model, tmp_path / "b")
    assert losses(capsys.readouterr().out) == first
    trained(model, tmp_path / "c", seed=1)
    assert losses(capsys.readouterr().out) != first


@pytest.mark.parametrize("model", ["hydragnn", "orbit2"])
def test_losses_fall(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(model, tmp_path, epochs=4, learning_rate=0.01)
    values = [float(value) for value in losses(capsys.readouterr().out)]
    quarter = len(values) // 4
    assert sum(values[-quarter:]) < 0.9 * sum(values[:quarter])


@pytest.mark.parametrize(
    ("model", "training", "key", "value"),
    [
        ("hydragnn", {"activation_checkpointing": True}, "activation_checkpointing", "on"),
        ("orbit2", {"activation_checkpointing": True}, "activation_checkpointing", "on"),
        ("orbit2", {"sdpa_backend": "math"}, "sdpa_blocks", "math"),
        ("orbit2", {"sdpa_backend": "flash"}, "sdpa_var_agg", "flash"),
        ("orbit2", {"sdpa_backend": "efficient+math"}, "sdpa_backends", "efficient+math"),
        ("orbit2", {"compile": True, "compile_backend": "aot_eager"}, "compile", "on"),
        ("hydragnn", {"batch_size": 2}, "batch_size", "2"),
        ("hydragnn", {"num_workers": 1, "persistent_workers": True}, "persistent_workers", "on"),
    ],
)
def test_levers_take_effect(
    model: str, training: dict[str, Any], key: str, value: str, tmp_path: Path
) -> None:
    assert trained(model, tmp_path, epochs=1, **training).effects[key] == value


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model", ["hydragnn", "orbit2"])
def test_the_type_asked_for_is_the_type_of_the_parameters(
    model: str, dtype: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trained(model, tmp_path, epochs=1, dtype=dtype).dtype == dtype
    assert all(float(value) > 0 for value in losses(capsys.readouterr().out))


def test_a_backend_that_the_device_lacks_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="No viable backend"):
        trained("orbit2", tmp_path, sdpa_backend="cudnn")


def test_checkpoints_are_written_when_asked(tmp_path: Path) -> None:
    trained("hydragnn", tmp_path, save_checkpoints=True)
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["epoch_0.pt", "epoch_1.pt"]


def test_without_validation_no_epoch_line_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained("hydragnn", tmp_path, validate_epochs=False)
    assert "Epoch:" not in capsys.readouterr().err
