"""What Snakemake costs on a SLURM cluster: submissions, load on the controller, latency, memory.

`python -m benchmarks.slurm [--json] [--jobs 200]` starts a real four-node SLURM here (as root;
tests/cluster/packages.txt) and, through both profiles, runs many tiny jobs and a chain of longer
ones; then, through one, two-node runs at the same time. Times of submissions and ends are the
controller's own log, to the millisecond; its load is `sdiag`. All nodes share this machine's cores,
and each job starts Snakemake twice: the throughput is the machine's, the rest the executor's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from tests.cluster.slurm_conf import Layout
from tests.cluster.testbed import Testbed, missing

ROOT = Path(__file__).resolve().parents[1]
PROFILES = ("slurm", "slurm-bounded")
# Without accounting the official executor must be told to ask the controller.
_EXTRA = {"slurm": ["--slurm-status-command=squeue"], "slurm-bounded": []}
_LIMIT_S = 1500.0

MANY = """
rule all:
    input: [f"out/{{i}}" for i in range({count})]
    localrule: True
rule tiny:
    output: "out/{{i}}"
    shell: "touch {{output}}"
"""
CHAIN = """
rule link:
    input: lambda w: f"{{int(w.i) - 1}}.link" if int(w.i) else []
    output: "{{i}}.link"
    shell: "sleep {seconds}; touch {{output}}"
"""
RUNS = """
rule all:
    input: [f"{{i}}.nodes" for i in range({count})]
    localrule: True
rule run:
    output: "{{i}}.nodes"
    resources: mpi="srun", nodes=2, tasks=2, slurm_extra="--exclusive --ntasks-per-node=1"
    shell: "srun -N 2 -n 2 sh -c 'sleep {seconds}; hostname' > {{output}}"
"""


@dataclass(frozen=True)
class Measured:
    """One Snakemake: how long, its peak memory, and when each job was submitted and ended."""

    seconds: float
    rss_mb: float
    submitted: list[float]
    ended: list[float]
    rpcs: Mapping[str, int]


def measure(snakefile: str, profile: str, targets: list[str]) -> Measured:
    """Run a workflow through the profile on a fresh cluster."""
    with tempfile.TemporaryDirectory() as folder, Testbed(Layout()) as cluster:
        (Path(folder) / "Snakefile").write_text(snakefile)
        cluster.run("sdiag", "--reset")
        start = time.monotonic()
        rss = _peak_rss(_start(Path(folder), cluster, profile, targets), start + _LIMIT_S)
        seconds = time.monotonic() - start
        log = (cluster.root / "log" / "slurmctld.log").read_text()
        rpcs = dict(re.findall(r"^\s+(REQUEST_\w+)\s.*?count:(\d+)", cluster.run("sdiag"), re.M))
    return Measured(
        seconds,
        rss / 1e6,
        _times(log, r"_slurm_rpc_submit_batch_job: JobId"),
        _times(log, r"_job_complete: JobId=\d+ done"),
        {name: int(count) for name, count in rpcs.items()},
    )


def _start(
    folder: Path, cluster: Testbed, profile: str, targets: list[str]
) -> subprocess.Popen[bytes]:
    resources = ["slurm_partition=batch", "runtime=10", "mem_mb=500"]
    command = ["-m", "snakemake", *targets, "--profile", str(ROOT / "profiles" / profile)]
    command += ["--default-resources", *resources, *_EXTRA[profile]]
    env = cluster.env | {"PYTHONPATH": f"{ROOT}/scripts"}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _peak_rss(process: subprocess.Popen[bytes], deadline: float) -> int:
    """Wait for the end; the largest resident size of the process alone, in bytes."""
    peak, seen = 0, psutil.Process(process.pid)
    try:
        while process.poll() is None:
            if time.monotonic() > deadline:
                raise SystemExit(f"Snakemake has not ended after {_LIMIT_S:.0f} s")
            try:
                peak = max(peak, seen.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            time.sleep(0.2)
    finally:
        process.kill() if process.poll() is None else None
    if process.wait():
        raise SystemExit(f"Snakemake failed with exit code {process.returncode}")
    return peak


def _times(log: str, what: str) -> list[float]:
    stamps = re.findall(rf"^\[(\S+)\] {what}", log, re.MULTILINE)
    return [datetime.fromisoformat(stamp).timestamp() for stamp in stamps]


def many(profile: str, count: int) -> dict[str, Any]:
    """Tiny jobs, no more at a time than the profile says."""
    seen = measure(MANY.format(count=count), profile, [])
    first = seen.submitted[:20]
    queries = sum(n for name, n in seen.rpcs.items() if name.startswith("REQUEST_JOB_INFO"))
    return {
        "jobs": len(seen.submitted),
        "seconds": round(seen.seconds, 1),
        "burst_submissions_per_s": round((len(first) - 1) / (first[-1] - first[0]), 2),
        "submissions_per_s": round(
            (len(seen.submitted) - 1) / (seen.submitted[-1] - seen.submitted[0]), 2
        ),
        "status_queries_per_min": round(60 * queries / seen.seconds, 1),
        "rpcs_per_job": round(sum(seen.rpcs.values()) / len(seen.submitted), 1),
        "snakemake_rss_mb": round(seen.rss_mb),
    }


def latency(profile: str, links: int, seconds: int) -> dict[str, Any]:
    """From the end of a job, in the controller's log, to the submission of the one that waits."""
    seen = measure(CHAIN.format(seconds=seconds), profile, [f"{links}.link"])
    gaps = [b - a for a, b in zip(seen.ended, seen.submitted[1:], strict=False)]
    return {
        "job_s": seconds,
        "gaps": len(gaps),
        "median_s": round(statistics.median(gaps), 1),
        "max_s": round(max(gaps), 1),
    }


def together(profile: str, count: int, seconds: int) -> dict[str, Any]:
    """Two-node runs at once: each job's nodes are its own while it runs."""
    seen = measure(RUNS.format(count=count, seconds=seconds), profile, [])
    return {
        "runs": len(seen.ended),
        "run_s": seconds,
        "seconds": round(seen.seconds, 1),
        "one_after_another_s": count * seconds,
        "ends_apart_s": [round(b - a, 1) for a, b in zip(seen.ended, seen.ended[1:], strict=False)],
    }


def benchmarks(jobs: int, links: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """All benchmarks by name, in their order."""
    tasks: dict[str, Callable[[], dict[str, Any]]] = {}
    for profile in PROFILES:
        tasks[f"latency-{profile}"] = partial(latency, profile, links, seconds=20)
        tasks[f"many-{profile}"] = partial(many, profile, jobs)
    return tasks | {"together": partial(together, "slurm-bounded", count=4, seconds=10)}


def main() -> None:
    """Command line."""
    cli = argparse.ArgumentParser(description="Snakemake on SLURM: throughput, load, latency")
    cli.add_argument("--json", action="store_true", help="one JSON object as the last line")
    cli.add_argument("--jobs", type=int, default=200, help="tiny jobs for each executor")
    cli.add_argument("--links", type=int, default=3, help="jobs that follow one another")
    names = list(benchmarks(0, 0))
    cli.add_argument("--only", nargs="+", choices=names, default=names, help="some of them")
    arguments = cli.parse_args()
    if reason := missing(Layout()):
        raise SystemExit(reason)
    results: dict[str, Any] = {}
    for name, task in benchmarks(arguments.jobs, arguments.links).items():
        if name not in arguments.only:
            continue
        results[name] = result = task()
        print(name, *(f"  {key:<26}{value}" for key, value in result.items()), sep="\n", flush=True)
    if arguments.json:
        machine = {"cores": os.cpu_count(), "python": platform.python_version()}
        print(json.dumps({"benchmark": "slurm", "machine": machine, **results}, sort_keys=True))


if __name__ == "__main__":
    main()
