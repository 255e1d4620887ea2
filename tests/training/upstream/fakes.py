"""Small trainers with the interfaces of the real ones, and recipes and sites to run them.

The real trainers cannot be shipped; `test_real_trainers.py` runs them where they are installed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from perfproof.schema.config import Cluster, Recipe, ResolvedRecipe, Workload

HYDRAGNN_CONFIG: dict[str, Any] = {
    "Verbosity": {"level": 2},
    "NeuralNetwork": {
        "Architecture": {"mpnn_type": "MACE", "hidden_dim": 64, "output_heads": {"graph": {}}},
        "Training": {
            "num_epoch": 40,
            "EarlyStopping": True,
            "batch_size": 64,
            "Optimizer": {"type": "AdamW", "learning_rate": 0.01},
        },
    },
}

ORBIT2_CONFIG: dict[str, Any] = {
    "trainer": {
        "max_epochs": 100,
        "checkpoint": None,
        "batch_size": 32,
        "buffer_size": 400,
        "num_workers": 2,
        "data_type": "bfloat16",
    },
    "parallelism": {"fsdp": 4, "simple_ddp": 4, "tensor_par": 1, "seq_par": 1},
    "model": {"preset": "res_slimvit", "lr": "2e-3", "num_heads": 4},
    "data": {"low_res_dir": {"PRISM": "/nowhere"}, "high_res_dir": {"PRISM": "/nowhere"}},
}

_HYDRAGNN_LOOP = """
import os
import torch
from torch.profiler import profile, schedule, tensorboard_trace_handler


class MPI:
    class COMM_WORLD:
        Get_size = staticmethod(lambda: 1)


def train(loader, model, opt, verbosity, num_tasks=None, profiler=None, precision="fp32"):
    model.train()
    limit = int(os.environ["HYDRAGNN_MAX_NUM_BATCH"])
    for index, data in enumerate(loader):
        if index >= limit:
            break
        opt.zero_grad()
        loss, _ = model.module.loss(model(data.x), data.x, None)
        loss.backward()
        opt.step()
        if profiler is not None:
            profiler.step()


def train_validate_test(model, optimizer, loader, config, log_name):
    profiled = config["Profile"]["target_epoch"] if config["Profile"]["enable"] else None
    for epoch in range(config["Training"]["num_epoch"]):
        if epoch != profiled:
            train(loader, model, optimizer, 2)
            continue
        handler = tensorboard_trace_handler("./logs/" + log_name)
        window = schedule(wait=5, warmup=3, active=3, repeat=1)
        with profile(schedule=window, on_trace_ready=handler) as profiler:
            train(loader, model, optimizer, 2, profiler=profiler)
"""

_HYDRAGNN_SCRIPT = """
import argparse
import json
import os
import sys

import torch
from hydragnn.train.train_validate_test import train_validate_test
from sibling import Graphs

cli = argparse.ArgumentParser()
cli.add_argument("--inputfile")
config = json.load(open(cli.parse_args().inputfile))["NeuralNetwork"]
assert os.environ["OMPI_COMM_WORLD_SIZE"] == "1"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def loss(self, pred, value, heads):
        total = ((pred - value) ** 2).mean()
        return total, [total]


class Wrapped(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


model = Wrapped(Model())
loader = torch.utils.data.DataLoader(
    torch.rand(30, 4),
    batch_size=config["Training"]["batch_size"],
    num_workers=int(os.environ["HYDRAGNN_NUM_WORKERS"]),
    collate_fn=Graphs,
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_validate_test(model, optimizer, loader, config, "fake")
torch.save(model.state_dict(), "logs/fake/fake_epoch.pk")
os.symlink("fake_epoch.pk", "logs/fake/fake.pk")
sys.exit(0)
"""

_HYDRAGNN_SIBLING = """
import torch


class Graphs:
    def __init__(self, rows):
        self.x = torch.stack(rows)
        self.num_graphs = len(rows)
"""

_ORBIT2_MODULE = """
import torch


def collate(rows):
    x = torch.stack(rows)
    return x, x, ["t"], ["t"]


class IterDataModule:
    def __init__(self, batch_size, num_workers):
        self.batch_size, self.num_workers = batch_size, num_workers

    def train_dataloader(self):
        return torch.utils.data.DataLoader(
            torch.rand(40, 4), batch_size=self.batch_size, collate_fn=collate,
            num_workers=self.num_workers,
        )
"""

_ORBIT2_BLOCK = """
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)
"""

_ORBIT2_SCRIPT = """
import os
import sys

import climate_learn as cl
import torch
import torch.distributed as dist
import yaml
from climate_learn.data.itermodule import IterDataModule


def training_step(batch, batch_idx, net):
    x, y, _, _ = batch
    return ((net(x) - y) ** 2).mean()


def main(conf):
    trainer = conf["trainer"]
    model = cl.load_downscaling_module()[0]
    torch.save(model.state_dict(), "initial_0.pth")
    if trainer["data_type"] == "bfloat16":
        model.to(torch.bfloat16)
        shardedgradscaler(enabled=False)
        print("scaler", flush=true)
    optimizer = torch.optim.SGD(model.parameters(), lr=float(conf["model"]["lr"]))
    epoch_start = 0
    while epoch_start + 1 < trainer["max_epochs"]:
        data = IterDataModule(trainer["batch_size"], trainer["num_workers"])
        for index, batch in enumerate(data.train_dataloader()):
            kind = next(model.parameters()).dtype
            batch = [batch[0].to(kind), batch[1].to(kind), *batch[2:]]
            loss = training_step(batch, index, model)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print("epoch: ", epoch_start, "batch_idx", index, "world_rank", dist.get_rank(),
                  " loss ", loss, flush=True)
        torch.save(model.state_dict(), f"interm_epoch_{epoch_start}.ckpt")
        epoch_start += 1


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = os.environ["HOSTNAME"]
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group(
        "gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"])
    )
    main(yaml.safe_load(open(sys.argv[1])))
    dist.destroy_process_group()
"""


def hydragnn_clone(root: Path) -> Path:
    """A clone with HydraGNN's interface; its script is `examples/fake/fake.py`."""
    _write(root / "hydragnn/__init__.py", "")
    # As upstream: the function hides the module of the same name.
    names = "from .train_validate_test import train, train_validate_test"
    _write(root / "hydragnn/train/__init__.py", names)
    _write(root / "hydragnn/train/train_validate_test.py", _HYDRAGNN_LOOP)
    _write(root / "examples/fake/fake.py", _HYDRAGNN_SCRIPT)
    _write(root / "examples/fake/sibling.py", _HYDRAGNN_SIBLING)
    _write(root / "examples/fake/fake.json", json.dumps(HYDRAGNN_CONFIG))
    return root


def orbit2_clone(root: Path) -> Path:
    """A clone with ORBIT-2's interface, script and configuration where ORBIT-2 has them."""
    package = root / "src/climate_learn"
    _write(
        package / "__init__.py",
        "from .models.hub.components.vit_blocks import Block\n"
        "def load_downscaling_module():\n    return Block(), None\n",
    )
    for folder in ("data", "models", "models/hub", "models/hub/components"):
        _write(package / folder / "__init__.py", "")
    _write(package / "data/itermodule.py", _ORBIT2_MODULE)
    _write(package / "models/hub/components/vit_blocks.py", _ORBIT2_BLOCK)
    _write(root / "examples/intermediate_downscaling.py", _ORBIT2_SCRIPT)
    _write(root / "configs/interm_8m.yaml", yaml.safe_dump(ORBIT2_CONFIG, sort_keys=False))
    return root


def resolved(model: str, *, ranks: int = 1, env: Any = None, **sections: Any) -> ResolvedRecipe:
    """A recipe of two timed epochs; `sections` as in a recipe file."""
    training = {
        "dtype": "float32",
        "batch_size": 2,
        "epochs": 2,
        "batches_per_epoch": 12,
        **sections.pop("training", {}),
    }
    recipe = Recipe.model_validate(
        {"model": model, "description": "a test", "training": training, **sections}
    )
    return ResolvedRecipe(
        trial="baseline",
        levers=[],
        workload=Workload.UPSTREAM,
        cluster="here",
        nodes=1,
        ranks=ranks,
        recipe=recipe,
        env=env or {},
    )


def cluster(model: str, root: Path, **site: Any) -> Cluster:
    """A cluster whose trainer of `model` lies in `root`, run by this interpreter."""
    upstream = {model: {"root": str(root), "python": sys.executable, **site}}
    return Cluster.model_validate(
        {"cluster": "here", "description": "a test", "upstream": upstream}
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
