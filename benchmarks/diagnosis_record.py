"""Record the labelled traces of the diagnosis benchmark on a GPU: one known bottleneck each.

`python -m benchmarks.diagnosis_record --out DIR` on a machine with one GPU records the one-GPU
cases, with two also those of two ranks. Needs PyTorch; nothing of this repository.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

Step = Callable[[], object]
WARM, ACTIVE = 3, 2
HALF, GPU = torch.bfloat16, "cuda"


def gemm_bound() -> Step:
    """Large products and nothing else."""
    a, b = (torch.randn(8192, 8192, device=GPU, dtype=HALF) for _ in range(2))
    return lambda: [a @ b for _ in range(12)]


def hbm_bound() -> Step:
    """Elementwise work on arrays far larger than any cache."""
    x, y = (torch.randn(1 << 29, device=GPU, dtype=HALF) for _ in range(2))

    def step() -> None:
        for _ in range(12):
            x.add_(y)

    return step


def dispatch_bound() -> Step:
    """Hundreds of kernels of a microsecond or two."""
    x = torch.randn(64, device=GPU)

    def step() -> None:
        for _ in range(300):
            x.mul_(1.0001)

    return step


def dispatch_bound_by_gemms() -> Step:
    """The same with small products: the top kernel is a GEMM, the bottleneck is not."""
    a, b = (torch.randn(64, 64, device=GPU) for _ in range(2))

    def step() -> None:
        for _ in range(250):
            torch.relu(a @ b)

    return step


class _Slow(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.005)
        return torch.full((1024,), float(index))


def slow_dataloader() -> Step:
    """One worker that takes 5 ms a sample; the GPU waits for the batch."""
    source = iter(torch.utils.data.DataLoader(_Slow(), batch_size=8, num_workers=1))
    weights = torch.randn(1024, 4096, device=GPU)
    return lambda: next(source).to(GPU) @ weights


def host_preprocessing() -> Step:
    """Work on the CPU before each step, without a loader."""
    raw, weights = torch.randn(1500, 1500), torch.randn(1500, 1500, device=GPU)

    def step() -> None:
        made = torch.linalg.svdvals(raw[:600, :600])
        made = torch.fft.fft2(raw).abs() + made[0]
        (made.to(GPU) @ weights).relu_()

    return step


def host_io() -> Step:
    """A file is written to disk and read back in every step."""
    path = Path(tempfile.mkdtemp()) / "x"
    data, x = os.urandom(96 << 20), torch.randn(2048, 2048, device=GPU)

    def step() -> None:
        with torch.profiler.record_function("checkpoint_write"), path.open("wb") as stream:
            stream.write(data)
            os.fsync(stream.fileno())
        x.mul_(1.0001)

    return step


def pageable_copies() -> Step:
    """Unpinned host memory to the GPU in every step."""
    host, weights = torch.randn(8192, 8192), torch.randn(8192, 256, device=GPU)
    return lambda: (host.to(GPU) @ weights).relu_()


def allocator_churn() -> Step:
    """The cache is emptied after every operation: memory is mapped and unmapped each time."""
    x = torch.randn(1 << 24, device=GPU)

    def step() -> None:
        for _ in range(12):
            (x * 2).sum()
            torch.cuda.empty_cache()

    return step


def sync_after_every_op() -> Step:
    """A value is read back after each operation."""
    x = torch.randn(512, 512, device=GPU)

    def step() -> None:
        for _ in range(120):
            float((x @ x)[0, 0])

    return step


def graph_replay() -> Step:
    """A captured graph of products: launched once, busy throughout."""
    a, b = (torch.randn(4096, 4096, device=GPU, dtype=HALF) for _ in range(2))
    out, graph = torch.empty_like(a), torch.cuda.CUDAGraph()
    torch.mm(a, b, out=out)
    with torch.cuda.graph(graph):
        for _ in range(40):
            torch.mm(a, b, out=out)
    return graph.replay


def overlapping_streams() -> Step:
    """Products on one stream, copies within the device on another: bound by the products."""
    a, b = (torch.randn(8192, 8192, device=GPU, dtype=HALF) for _ in range(2))
    x, y, side = (
        torch.randn(1 << 24, device=GPU),
        torch.empty(1 << 24, device=GPU),
        torch.cuda.Stream(),
    )

    def step() -> None:
        with torch.cuda.stream(side):
            for _ in range(8):
                y.copy_(x)
        for _ in range(10):
            torch.mm(a, b)

    return step


def healthy() -> Step:
    """A training step of a dense network: nearly always busy, mostly products."""
    widths = [4096] * 7
    layers = [torch.nn.Linear(i, o) for i, o in itertools.pairwise(widths)]
    model = torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.GELU())])
    model = model.to(GPU, HALF)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(8192, 4096, device=GPU, dtype=HALF)

    def step() -> None:
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def gradient_all_reduce() -> Step:
    """Little work and a large sum over the ranks."""
    grads, x = torch.randn(1 << 28, device=GPU), torch.randn(2048, 2048, device=GPU)

    def step() -> None:
        x @ x
        dist.all_reduce(grads)

    return step


def straggler() -> Step:
    """Rank 1 works on its CPU before the sum; rank 0 waits, which is not the network's fault."""
    grads, raw = torch.randn(1 << 22, device=GPU), torch.randn(900, 900)
    a = torch.randn(4096, 4096, device=GPU, dtype=HALF)

    def step() -> None:
        for _ in range(4):
            a @ a
        if dist.get_rank() == 1:
            torch.linalg.svdvals(raw)
        dist.all_reduce(grads)

    return step


ONE: dict[str, tuple[Callable[[], Step], str]] = {
    "gemm_bound": (gemm_bound, "gpu_compute"),
    "hbm_bound": (hbm_bound, "gpu_memory_hbm"),
    "dispatch_bound": (dispatch_bound, "cpu_dispatch"),
    "dispatch_bound_by_gemms": (dispatch_bound_by_gemms, "cpu_dispatch"),
    "slow_dataloader": (slow_dataloader, "dataloader"),
    "host_preprocessing": (host_preprocessing, "host_cpu"),
    "host_io": (host_io, "host_io"),
    "pageable_copies": (pageable_copies, "host_io"),
    "allocator_churn": (allocator_churn, "host_cpu"),
    "sync_after_every_op": (sync_after_every_op, "cpu_dispatch"),
    "graph_replay": (graph_replay, "gpu_compute"),
    "overlapping_streams": (overlapping_streams, "gpu_compute"),
    "healthy": (healthy, "gpu_compute"),
}
TWO: dict[str, tuple[Callable[[], Step], str]] = {
    "gradient_all_reduce": (gradient_all_reduce, "comm_xgmi"),
    "straggler": (straggler, "host_cpu"),
}


def record(name: str, make: Callable[[], Step], out: Path) -> None:
    """Warm up, record `ACTIVE` steps, write one trace."""
    step = make()
    plan = schedule(wait=1, warmup=WARM, active=ACTIVE, repeat=1)
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=kinds, schedule=plan, record_shapes=True) as recording:
        for _ in range(1 + WARM + ACTIVE):
            step()
            torch.cuda.synchronize()
            recording.step()
    with tempfile.TemporaryDirectory() as place:
        raw = Path(place) / f"{name}.json"
        recording.export_chrome_trace(str(raw))
        # The trace says where it was written first, which is nobody's business.
        text = raw.read_bytes().replace(f"{place}/".encode(), b"")
    (out / f"{name}.pt.trace.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def _rank(rank: int, out: Path) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29611", "NCCL_NVLS_ENABLE": "0"}
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    for name, (make, _) in TWO.items():
        record(f"{name}.rank{rank}", make, out)
    dist.destroy_process_group()


def labels() -> Iterator[tuple[str, str]]:
    """Name and bottleneck class of every case that this machine can record."""
    cases = ONE | (TWO if torch.cuda.device_count() > 1 else {})
    for name, (_, label) in cases.items():
        yield name, label


def main() -> None:
    """Command line."""
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    cli.add_argument("--out", type=Path, required=True, help="directory for traces and labels.json")
    out: Path = cli.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, (make, _) in ONE.items():
        record(name, make, out)
        torch.cuda.empty_cache()
        print(name, (out / f"{name}.pt.trace.json.gz").stat().st_size, flush=True)
    if torch.cuda.device_count() > 1:
        torch.multiprocessing.spawn(_rank, (out,), 2)
    (out / "labels.json").write_text(json.dumps(dict(labels()), indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
