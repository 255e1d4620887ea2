"""Benchmark: one trace to all its tables, against the standard library doing far less.

`python -m benchmarks.traces [--json] [--trace FILE]`

Takes the largest trace beside the repository (`../shared/data/traces`), or a generated one. Each
measurement is a fresh process; its times exclude interpreter start and imports, its peak memory
includes them. CPU seconds are given too: they say more than wall time on a shared machine. The
baseline is `json.load` and a plain loop that finds busy and communication time, as a short script
would.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.traces.builder import training

from perfproof.traces.columns import read_trace
from perfproof.traces.context import make_context
from perfproof.traces.csvfile import write_table
from perfproof.traces.tables import make_tables
from perfproof.traces.timeline import exposed_comm

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT.parent / "shared" / "data" / "traces"
REPEATS = 3
GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"})
Result = dict[str, Any]


def tables(trace: Path) -> Result:
    """All tables of one trace, written to a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        read = read_trace(trace, trace.name)
        decoded = time.perf_counter()
        context = make_context(read, 0)
        for name, table in make_tables(context).items():
            write_table(Path(folder), f"{name}.csv", table)
        end = time.perf_counter()
    return {
        "wall_s": end - begin,
        "read_s": decoded - begin,
        "busy_ms": context.all_busy.every.length() / 1e6,
        "comm_ms": context.all_busy.comm.length() / 1e6,
        "exposed_comm_ms": exposed_comm(context.all_busy) / 1e6,
    }


def standard_library(trace: Path) -> Result:
    """Busy and communication time with `json` and a loop, nothing else."""
    begin = time.perf_counter()
    opened = gzip.open if trace.suffix == ".gz" else open
    with opened(trace, "rb") as stream:
        events = json.load(stream)["traceEvents"]
    every: list[tuple[float, float]] = []
    comm: list[tuple[float, float]] = []
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in GPU:
            span = (event["ts"], event["ts"] + event["dur"])
            every.append(span)
            if any(word in event["name"].lower() for word in ("nccl", "rccl", "all_reduce")):
                comm.append(span)
    busy, communicating = _covered(every), _covered(comm)
    end = time.perf_counter()
    return {"wall_s": end - begin, "busy_ms": busy / 1e3, "comm_ms": communicating / 1e3}


def _covered(spans: list[tuple[float, float]]) -> float:
    total, reach = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return total


MEASURED: dict[str, Callable[[Path], Result]] = {
    "tables": tables,
    "standard_library": standard_library,
}


def one(kind: str, trace: Path) -> None:
    """One measurement in this process, printed as JSON."""
    begin = time.process_time()
    result = MEASURED[kind](trace)
    result["cpu_s"] = time.process_time() - begin
    result["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


def measure(kind: str, trace: Path) -> Result:
    """Median time and largest memory of some fresh processes."""
    command = [sys.executable, "-m", "benchmarks.traces", "--one", kind, "--trace", str(trace)]
    runs = [
        json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
        for _ in range(REPEATS)
    ]
    middle = sorted(runs, key=lambda run: run["wall_s"])[REPEATS // 2]
    spread = [run["wall_s"] for run in runs]
    return {
        **middle,
        "wall_s": statistics.median(spread),
        "cpu_s": statistics.median(run["cpu_s"] for run in runs),
        "wall_s_min": min(spread),
        "wall_s_max": max(spread),
        "peak_rss_mb": max(run["peak_rss_mb"] for run in runs),
    }


def choose(folder: Path) -> Path:
    """The largest recorded trace, or a generated one of a similar kind in `folder`."""
    recorded = sorted(
        RECORDED.rglob("*.json.gz"), key=lambda path: (path.stat().st_size, path.name)
    )
    if recorded:
        return recorded[-1]
    return training(steps=20, layers=400).write(folder / "generated.json.gz")


def compare(trace: Path) -> Result:
    """All numbers about one trace."""
    raw = gzip.decompress(trace.read_bytes()) if trace.suffix == ".gz" else trace.read_bytes()
    megabytes, events = len(raw) / 1e6, raw.count(b'"ph"')
    del raw
    ours, theirs = (measure(kind, trace) for kind in MEASURED)
    return {
        "benchmark": "traces",
        "trace": trace.name,
        "raw_mb": round(megabytes, 1),
        "events": events,
        "repeats": REPEATS,
        "tables": ours,
        "standard_library": theirs,
        "mb_per_s": megabytes / ours["wall_s"],
        "events_per_s": events / ours["wall_s"],
        "speedup": theirs["wall_s"] / ours["wall_s"],
        "speedup_cpu": theirs["cpu_s"] / ours["cpu_s"],
        "memory_ratio": theirs["peak_rss_mb"] / ours["peak_rss_mb"],
        "busy_difference_ms": abs(theirs["busy_ms"] - ours["busy_ms"]),
    }


def report(found: Result) -> str:
    """The numbers for a reader."""
    ours, theirs = found["tables"], found["standard_library"]
    return "\n".join(
        (
            f"{found['trace']}: {found['raw_mb']} MB raw, {found['events']} events",
            f"all tables:            {_line(ours)}; reading {ours['read_s']:.2f} s, "
            f"{found['mb_per_s']:.0f} MB/s, {found['events_per_s']:.0f} events/s",
            f"json and a plain loop: {_line(theirs)}; busy and communication time only",
            f"ratio: {found['speedup']:.1f} in wall, {found['speedup_cpu']:.1f} in CPU time, "
            f"{found['memory_ratio']:.1f} in memory; busy time differs by "
            f"{found['busy_difference_ms']:.6f} ms",
        )
    )


def _line(run: Result) -> str:
    wall = f"{run['wall_s']:.2f} s ({run['wall_s_min']:.2f} to {run['wall_s_max']:.2f})"
    return f"{wall}, CPU {run['cpu_s']:.2f} s, {run['peak_rss_mb']:.0f} MB"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--trace", type=Path, help="measure this trace")
    parser.add_argument("--one", choices=MEASURED, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.trace)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = compare(arguments.trace or choose(Path(folder)))
    print(report(found))
    if arguments.json:
        print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    main()
