"""Training logs and run directories that the tests of this stage write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfproof.core.files import digest_file
from perfproof.foms.assemble import foms_of
from perfproof.foms.log import Log
from perfproof.foms.reader import read_log
from perfproof.schema.base import Reason
from perfproof.schema.config import Recipe, ResolvedRecipe, Workload
from perfproof.schema.foms import Foms
from perfproof.schema.run import (
    Artifact,
    Device,
    Inventory,
    Manifest,
    RankReport,
    Role,
    State,
    Versions,
)
from perfproof.schema.traces import TraceSummary

RANKS = 8


def layout(fsdp: int = RANKS, ddp: int = 1, tensor: int = 1) -> str:
    """ORBIT-2's layout line."""
    return (
        f"data_par_size {fsdp * ddp} fsdp_size {fsdp} simple_ddp_size {ddp} "
        f"tensor_par_size {tensor} seq_par_size 1 division 1 overlap 0\n"
    )


def loss_line(epoch: int, index: int, rank: int, loss: object) -> str:
    """A loss line with ORBIT-2's spacing."""
    return (
        f"epoch:  {epoch} batch_idx {index} world_rank {rank}  loss  tensor({loss}, "
        "device='cuda:0', grad_fn=<MeanBackward0>)\n"
    )


def size_line(size: int) -> str:
    """The realised batch as EDM prints it."""
    return f"y.shape torch.Size([{size}, 3, 108, 216])\n"


def time_line(seconds: float, rank: int = 0) -> str:
    """The time of a step as ORBIT-2 prints it, with the empty line that follows."""
    return f"my rank {rank}. tic4-tic1 in {seconds:.4f} seconds\n\n"


def three_epochs_of_bars(batches: int, rate: str) -> str:
    """HydraGNN's bars and losses of three equal epochs."""
    bars = start_bar(batches) + end_bar(batches, rate)
    return "".join(bars + epoch_line(epoch, 5.0 - epoch) for epoch in range(3))


@dataclass(frozen=True)
class Step:
    """One step of an ORBIT-2 log."""

    seconds: float
    size: int | None = None
    loss: object = 0.5


def edm_epoch(epoch: int, steps: Sequence[Step], ranks: int = 1) -> str:
    """Steps of one epoch, all ranks in one log."""
    text = f"epoch  {epoch}\n"
    for index, step in enumerate(steps):
        if step.size is not None:
            text += size_line(step.size) * ranks
        text += "".join(loss_line(epoch, index, rank, step.loss) for rank in range(ranks))
        text += time_line(step.seconds)
    return text


def edm_log(epochs: Sequence[Sequence[Step]], ranks: int = 1) -> str:
    """A whole ORBIT-2 log of a job of eight data-parallel ranks."""
    return layout() + "".join(edm_epoch(e, steps, ranks) for e, steps in enumerate(epochs))


def start_bar(total: int) -> str:
    """The first drawing of a bar."""
    return f"\rTrain:   0%|          | 0/{total} [00:00<?, ?it/s]"


def end_bar(total: int, rate: str, elapsed: str = "00:10", newline: bool = True) -> str:
    """A bar at 100 % with `rate` such as `1.52s/it`."""
    end = "\n" if newline else ""
    return f"\rTrain: 100%|{'█' * 10}| {total}/{total} [{elapsed}<00:00,  {rate}]{end}"


def epoch_line(epoch: int, loss: object, rank: int = 0) -> str:
    """The losses of an epoch as HydraGNN logs them."""
    return f"{rank}: Epoch: {epoch:02d}, Train Loss: {loss}, Val Loss: 5.0, Test Loss: 5.1\n"


def step_record(**fields: object) -> str:
    """A step record."""
    return "[perfproof] step " + " ".join(f"{k}={v}" for k, v in fields.items()) + "\n"


def parse(tmp_path: Path, text: str | bytes) -> Log:
    """Read `text` as a log."""
    path = tmp_path / "log_rank0.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_log(path)


def hydragnn_config(batch: int, epochs: int | None = None, precision: str = "fp64") -> str:
    """The part of HydraGNN's configuration that matters here."""
    training: dict[str, Any] = {"batch_size": batch, "precision": precision}
    if epochs is not None:
        training["num_epoch"] = epochs
    return json.dumps({"NeuralNetwork": {"Training": training}})


def orbit2_config(batch: int, fsdp: int = RANKS) -> str:
    """The part of ORBIT-2's configuration that matters here."""
    return (
        f"trainer:\n  batch_size: {batch}\n  data_type: bfloat16\n"
        f"parallelism:\n  fsdp: {fsdp}\n  simple_ddp: 1\n  tensor_par: 1\n  seq_par: 1\n"
    )


def inventory(root: Path, run_id: str = "run") -> Inventory:
    """Everything in `root`, with roles by name."""
    artifacts = [_artifact(path, root) for path in sorted(root.iterdir())]
    return Inventory(run_id=run_id, root=str(root), artifacts=artifacts)


def _artifact(path: Path, root: Path) -> Artifact:
    roles = {"manifest.json": Role.MANIFEST, "meta.json": Role.META}
    config = path.name.startswith("config.")
    role = roles.get(path.name, Role.CONFIG if config else Role.LOG)
    name = path.stem.removeprefix("log_rank")
    rank = int(name) if role is Role.LOG and name.isdigit() else None
    return Artifact(
        path=path.relative_to(root).as_posix(),
        role=role,
        rank=rank,
        size_bytes=path.stat().st_size,
        blake3=digest_file(path),
        reasons={} if rank is not None else {"rank": Reason.NOT_RECORDED},
    )


def foms(root: Path, files: Mapping[str, str | bytes], traces: TraceSummary | None = None) -> Foms:
    """Write `files` into `root` and extract."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return foms_of(inventory(root), traces)


def manifest(**rank0: Any) -> Manifest:
    """A complete manifest; `rank0` overrides fields of rank 0's report."""
    device = Device(
        kind="gpu", name="MI355X", vendor="amd", arch="gfx950", memory_bytes=288 * 10**9, count=8
    )
    report = {
        "world_size": RANKS,
        "device": device,
        "versions": _versions(),
        "dtype": "torch.bfloat16",
        "num_workers": 1,
        "env": {},
        **rank0,
    }
    resolved = ResolvedRecipe(
        trial="baseline",
        levers=[],
        workload=Workload.UPSTREAM,
        cluster="local",
        nodes=1,
        ranks=RANKS,
        recipe=Recipe(model="orbit2", description="test"),
        env={},
    )
    return Manifest(
        run_id="run",
        state=State.COMPLETED,
        exit_code=0,
        ended_by="exit",
        started_at="2026-01-01T00:00:00Z",
        ended_at="2026-01-01T00:10:00Z",
        duration_s=600.0,
        node_list=["n2", "n1"],
        slurm_job_id="1",
        command=["train"],
        resolved=resolved,
        recipe_digest="d1",
        rank0=RankReport(**report),
    )


def _versions() -> Versions:
    names = [name for name in Versions.model_fields if name not in ("python", "reasons")]
    reasons = dict.fromkeys(names, Reason.NOT_RECORDED)
    return Versions(python="3.11", **dict.fromkeys(names), reasons=reasons)
