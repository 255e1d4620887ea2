"""Benchmark: one trace to all its tables, against the standard library doing far less.

`python -m benchmarks.traces [--json] [--trace FILE] [--ranks N]`

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
import os
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
from tests.traces.make import write_inventory

from perfproof.traces.annotate import annotate
from perfproof.traces.columns import read_trace
from perfproof.traces.compare import compare as compare_sides
from perfproof.traces.compare import read_side
from perfproof.traces.context import make_context
from perfproof.traces.csvfile import write_table
from perfproof.traces.cut import Options, cut_file
from perfproof.traces.rank_work import make_tables
from perfproof.traces.raw import read_raw, write_raw
from perfproof.traces.timeline import exposed_comm
from perfproof.traces.window import find_steps

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


def annotated(trace: Path) -> Result:
    """The same trace with our tracks, compressed again."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        annotate(trace, [], Path(folder) / "annotated.json.gz")
        end = time.perf_counter()
    return {"wall_s": end - begin}


def one_step(trace: Path) -> Result:
    """The middle step cut out, compressed; nothing for a trace without steps."""
    numbers = find_steps(read_trace(trace, trace.name)).number
    if not numbers:
        return {"wall_s": 0.0}
    step = numbers[len(numbers) // 2]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        _, size = cut_file(trace, range(step, step + 1), Path(folder) / "cut.json.gz", Options())
        end = time.perf_counter()
    return {"wall_s": end - begin, "size_bytes": size}


def with_itself(trace: Path) -> Result:
    """Two traces read and compared, all levels written; the two are one file."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        sides = [read_side([trace], name) for name in "ab"]
        compare_sides(sides[0], sides[1], Path(folder))
        end = time.perf_counter()
    return {"wall_s": end - begin}


def _covered(spans: list[tuple[float, float]]) -> float:
    total, reach = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return total


MEASURED: dict[str, Callable[[Path], Result]] = {
    "tables": tables,
    "standard_library": standard_library,
    "compare": with_itself,
    "cut": one_step,
    "annotate": annotated,
}
_TOOLS = ("compare", "cut", "annotate")


def one(kind: str, trace: Path) -> None:
    """One measurement in this process, printed as JSON."""
    begin = time.process_time()
    result = MEASURED[kind](trace)
    result["cpu_s"] = time.process_time() - begin
    result["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


def many_ranks(trace: Path, ranks: int) -> Result:
    """All tables of a run with so many ranks: the trace again and again, later by 1 ms each."""
    with tempfile.TemporaryDirectory() as folder:
        inventory = _replicate(trace, ranks, Path(folder))
        runs = {jobs: _tables_step(inventory, jobs) for jobs in (1, os.cpu_count() or 1)}
    serial, parallel = runs.values() if len(runs) > 1 else (*runs.values(), *runs.values())
    return {
        "benchmark": "traces of many ranks",
        "trace": trace.name,
        "ranks": ranks,
        "processes": os.cpu_count(),
        "serial_s": serial["wall_s"],
        "parallel_s": parallel["wall_s"],
        "speedup": serial["wall_s"] / parallel["wall_s"],
        "peak_rss_mb": serial["peak_rss_mb"],
        "peak_rss_mb_parallel": parallel["peak_rss_mb"],
    }


def _replicate(trace: Path, ranks: int, folder: Path) -> Path:
    raw = read_raw(trace)
    base = raw.decoded.document.baseTimeNanoseconds or 0
    for rank in range(ranks):
        members = {
            **raw.members,
            "distributedInfo": json.dumps({"rank": rank, "world_size": ranks}).encode(),
            "baseTimeNanoseconds": str(base + 1_000_000 * rank).encode(),
        }
        write_raw(folder / f"rank{rank}.json.gz", members, raw.texts)
    return write_inventory(folder, [f"rank{rank}.json.gz" for rank in range(ranks)])


def _tables_step(inventory: Path, jobs: int) -> Result:
    """The step as a command; memory is that of its largest process."""
    command = [sys.executable, "-m", "perfproof.traces.tables", "--inventory", str(inventory)]
    command += ["--out-dir", str(inventory.parent / f"out-{jobs}"), "--jobs", str(jobs)]
    begin = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the step failed: {' '.join(command)}")
    return {"wall_s": time.perf_counter() - begin, "peak_rss_mb": usage.ru_maxrss / 1024}


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
    ours, theirs = (measure(kind, trace) for kind in ("tables", "standard_library"))
    return {
        "benchmark": "traces",
        "trace": trace.name,
        "raw_mb": round(megabytes, 1),
        "events": events,
        "repeats": REPEATS,
        "tables": ours,
        "standard_library": theirs,
        **{kind: measure(kind, trace) for kind in _TOOLS},
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
            *(f"{kind + ':':<22} {_line(found[kind])}" for kind in _TOOLS),
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
    parser.add_argument("--ranks", type=int, help="measure a run of so many ranks instead")
    parser.add_argument("--one", choices=MEASURED, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.trace)
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = arguments.trace or choose(Path(folder))
        found = many_ranks(trace, arguments.ranks) if arguments.ranks else compare(trace)
    print(json.dumps(found, indent=2) if arguments.ranks else report(found))
    if arguments.json:
        print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    main()
