"""The real trainers, through the launcher, where they are installed; tiny, on the CPU.

Set PERFPROOF_TRAINER_PYTHON (an interpreter with their packages), PERFPROOF_HYDRAGNN_ROOT and
PERFPROOF_ORBIT2_ROOT (clones). PERFPROOF_HYDRAGNN_PYTHONPATH and PERFPROOF_ORBIT2_PYTHONPATH may
name folders, joined by `:`, with stand-ins for packages that cannot be installed.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from perfproof.schema.run import Manifest, State
from perfproof.training.launch import Job, launch
from tests.training.upstream import fakes, orbit2_data


def setting(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} is not set (the real trainer is not part of this repository)")
    return value


def train(tmp_path: Path, model: str, site: Any, **recipe: Any) -> Manifest:
    folders = os.environ.get(f"PERFPROOF_{model.upper()}_PYTHONPATH", "")
    site |= {
        "python": setting("PERFPROOF_TRAINER_PYTHON"),
        "pythonpath": [folder for folder in folders.split(":") if folder],
    }
    resolved = fakes.resolved(model, env={"OMP_NUM_THREADS": "1"}, **recipe)
    cluster = fakes.cluster(model, Path(site.pop("root")), **site)
    return launch(Job(resolved, cluster, tmp_path / "run", f"{model}/test"), os.environ)


def check(manifest: Manifest, run_dir: Path, ranks: int, steps: int) -> None:
    logs = [(run_dir / f"log_rank{rank}.txt").read_text() for rank in range(ranks)]
    assert manifest.state is State.COMPLETED, logs[0][-2000:]
    assert manifest.rank0 is not None
    assert manifest.rank0.world_size == ranks
    assert manifest.rank0.dtype == "float32"
    assert manifest.rank0.versions.trainer_commit
    for rank, log in enumerate(logs):
        records = [line for line in log.splitlines() if "[perfproof] step " in line]
        assert len(records) == steps
        assert sum("profiled=1" in record for record in records) == steps // 3
        with gzip.open(run_dir / f"traces/rank{rank}.pt.trace.json.gz") as stream:
            names = [event.get("name", "") for event in json.load(stream)["traceEvents"]]
        assert len({name for name in names if name.startswith("ProfilerStep#")}) == 3
    assert not [path for path in run_dir.rglob("*") if path.suffix in (".ckpt", ".pk", ".pth")]


def test_hydragnn(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(setting("PERFPROOF_HYDRAGNN_ROOT"), clone, symlinks=True)
    example = "examples/LennardJones"
    shutil.rmtree(clone / example / "dataset", ignore_errors=True)
    site = {
        "root": str(clone),
        "entry": f"{example}/LennardJones.py",
        "config_template": f"{example}/LJ.json",
        "preload": ["hydragnn.utils.input_config_parsing"],
        "config": {"Dataset.+number_configurations": 80},
    }
    sizes = {"mpnn_type": "EGNN", "hidden_dim": 8, "num_conv_layers": 2, "+equivariance": True}
    upstream = {"NeuralNetwork": {"Architecture": sizes}}
    manifest = train(tmp_path, "hydragnn", site, upstream=upstream, training={"batch_size": 4})
    check(manifest, tmp_path / "run", ranks=1, steps=36)
    losses = [
        float(line.split("loss=")[1].split()[0])
        for line in (tmp_path / "run/log_rank0.txt").read_text().splitlines()
        if "[perfproof] step epoch=0" in line
    ]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("ranks", [1, 2])
def test_orbit2(tmp_path: Path, ranks: int) -> None:
    orbit2_data.write(tmp_path / "data", files=4, samples=8)
    site = {
        "root": setting("PERFPROOF_ORBIT2_ROOT"),
        "shims": ["cpu"],
        "config": {
            "data.low_res_dir": {"PRISM": str(tmp_path / "data/low")},
            "data.high_res_dir": {"PRISM": str(tmp_path / "data/high")},
        },
    }
    sizes = {"embed_dim": 64, "depth": 2, "decoder_depth": 1, "num_heads": 2}
    manifest = train(
        tmp_path,
        "orbit2",
        site,
        ranks=ranks,
        upstream={"model": sizes, "trainer.buffer_size": 4},
        training={"batches_per_epoch": 6},
    )
    check(manifest, tmp_path / "run", ranks, steps=18)
