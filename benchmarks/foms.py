"""How fast a training log becomes figures of merit, and in how much memory.

`python -m benchmarks.foms [--json] [--megabytes 1000]` writes synthetic logs in the shapes of
ORBIT-2 (16 ranks, merged) and HydraGNN (progress bars) and times parse to FOMs: the median of three
fresh processes, wall clock, and processor time for machines that are shared. The baseline tries a
handful of regular expressions on every line; it runs on the smaller log and must find the same
steps or epochs. Peak memory at two sizes shows what grows: the numbers of each step, not the text.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.foms_logs import LOGS
from perfproof.foms.assemble import foms_of
from perfproof.schema.base import Reason
from perfproof.schema.run import Artifact, Inventory, Role

REPEATS = 3
SMALL_MEGABYTES = 100


def ours(path: Path) -> tuple[int, float]:
    """Steady steps and the mean of their times, or epochs and the last loss."""
    artifact = Artifact(
        path=path.name,
        role=Role.LOG,
        rank=None,
        size_bytes=path.stat().st_size,
        blake3="",
        reasons={"rank": Reason.NOT_RECORDED},
    )
    inventory = Inventory(run_id="benchmark", root=str(path.parent), artifacts=[artifact])
    foms = foms_of(inventory)
    if foms.step_time_s is not None:
        return foms.step_time_s.n, foms.step_time_s.mean
    return len(foms.loss_curve), foms.final_loss or 0.0


NAIVE = (
    r"epoch:\s+(\d+)\s+batch_idx\s+(\d+)\s+world_rank\s+0\s+loss\s+tensor\(([^,]+)",
    r"tic4-tic1 in ([\d.]+) seconds",
    r"y\.shape torch\.Size\(\[(\d+)",
    r"memory_reserved: ([\d.]+)GB",
    r"Train:\s+100%\|.*\| (\d+)/\d+ \[.*, +([\d.]+)(it/s|s/it)\]",
    r"Epoch: (\d+), Train Loss: ([\d.]+)",
)


def naive(path: Path) -> tuple[int, float]:
    """The same two numbers from a loop over lines with `re.search`."""
    epoch, index, times, losses = 0, 0, list[float](), list[float]()
    with path.open(encoding="utf-8", errors="replace") as stream:
        for text in stream:
            found = [re.search(pattern, text) for pattern in NAIVE]
            if found[0]:
                epoch, index = int(found[0][1]), int(found[0][2])
            if found[1] and epoch > 0 and index > 0:
                times.append(float(found[1][1]))
            if found[5]:
                losses.append(float(found[5][2]))
    return (len(times), statistics.fmean(times)) if times else (len(losses), losses[-1])


def measure(task: str, path: Path) -> dict[str, Any]:
    """Run `task` on `path` in this process: times, peak memory, what was found."""
    wall, processor = time.perf_counter(), time.process_time()
    count, value = {"ours": ours, "naive": naive}[task](path)
    return {
        "seconds": time.perf_counter() - wall,
        "processor_s": time.process_time() - processor,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        "found": [count, round(value, 9)],
    }


def measured(task: str, path: Path, repeats: int) -> dict[str, Any]:
    """Medians over fresh processes."""
    command = [sys.executable, "-m", "benchmarks.foms", "--measure", task, str(path)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(repeats)
    ]
    megabytes = path.stat().st_size / 1e6
    wall, processor = (
        statistics.median(run[key] for run in runs) for key in ("seconds", "processor_s")
    )
    return {
        "found": runs[0]["found"],
        "megabytes": round(megabytes),
        "seconds": round(wall, 2),
        "mb_per_s": round(megabytes / wall, 1),
        "mb_per_processor_s": round(megabytes / processor, 1),
        "peak_mb": statistics.median(run["peak_mb"] for run in runs),
    }


def benchmark(shape: str, megabytes: int, folder: Path) -> dict[str, Any]:
    """Both readers on a small log, ours on the large one too."""
    results = {}
    for name, size in (("small", min(SMALL_MEGABYTES, megabytes)), ("large", megabytes)):
        path = folder / f"{shape}-{name}.log"
        with path.open("wb") as stream:
            stream.writelines(LOGS[shape](size))
        results[name] = measured("ours", path, REPEATS)
        if name == "small":
            results["naive"] = measured("naive", path, 1)
        path.unlink()
    if results["small"]["found"] != results["naive"]["found"]:
        raise SystemExit(f"{shape}: the two readers disagree: {results}")
    ratio = results["small"]["mb_per_processor_s"] / results["naive"]["mb_per_processor_s"]
    return {**results, "ratio": round(ratio, 1)}


def table(logs: dict[str, dict[str, Any]]) -> str:
    """The results for a reader."""
    lines = ["log             MB    MB/s  MB/cpu-s  naive MB/cpu-s  ratio  peak MB  at small"]
    for shape, row in logs.items():
        large, small, slow = row["large"], row["small"], row["naive"]
        lines.append(
            f"{shape:<12}{large['megabytes']:>6}{large['mb_per_s']:>8}"
            f"{large['mb_per_processor_s']:>10}{slow['mb_per_processor_s']:>16}{row['ratio']:>7}"
            f"{large['peak_mb']:>9}{small['peak_mb']:>10}"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    cli = argparse.ArgumentParser(description="Training logs to figures of merit: speed, memory")
    cli.add_argument("--json", action="store_true", help="one JSON object as the last line")
    cli.add_argument("--megabytes", type=int, default=1000, help="size of the large log")
    cli.add_argument("--measure", nargs=2, metavar=("TASK", "LOG"), help=argparse.SUPPRESS)
    arguments = cli.parse_args()
    if arguments.measure:
        task, path = arguments.measure
        print(json.dumps(measure(task, Path(path))))
        return
    with tempfile.TemporaryDirectory() as folder:
        logs = {shape: benchmark(shape, arguments.megabytes, Path(folder)) for shape in LOGS}
    print(table(logs))
    if arguments.json:
        machine = {"cores": os.cpu_count(), "python": platform.python_version()}
        print(json.dumps({"benchmark": "foms", "machine": machine, "logs": logs}, sort_keys=True))


if __name__ == "__main__":
    main()
