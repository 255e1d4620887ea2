"""What the telemetry sampler costs the node that it shares with the training.

`python -m benchmarks.sampler [--json] [--seconds 60] [--interval-s 1]` runs the sampler as the
launcher does and reads its processor time and memory from the kernel, once it has taken its first
sample; start-up is told apart. Then the time to make the portable file of what it left, straight
and, where VictoriaMetrics is installed, through it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from perfproof.training.collectors.export import export
from perfproof.training.collectors.loading import load
from perfproof.training.collectors.store import find_server
from perfproof.training.nodes import host_name


def measured(folder: Path, seconds: float, interval_s: float) -> dict[str, Any]:
    """Cost of a sampler for so long."""
    words = ["-m", "perfproof.training.collectors.sampler", "--out", str(folder)]
    words += ["--job-id", "benchmark", "--interval-s", str(interval_s)]
    begun = time.monotonic()
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    said = process.stdout.readline().strip()
    ready_s = time.monotonic() - begun
    watched = psutil.Process(process.pid)
    before, since = sum(watched.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    spent, passed = sum(watched.cpu_times()[:2]) - before, time.monotonic() - since
    resident = watched.memory_info().rss
    process.send_signal(signal.SIGTERM)
    _, _, usage = os.wait4(process.pid, 0)
    path = folder / f"samples-{host_name()}.jsonl"
    found = load(folder)
    times = sorted({time_ms for series in found.series for time_ms in series.times_ms})
    gaps = [b - a for a, b in pairwise(times)][:-1]
    return {
        "said": said,
        "seconds": round(passed, 1),
        "interval_s": interval_s,
        "ready_s": round(ready_s, 3),
        "start_up_cpu_s": round(before, 2),
        "cores": spent / passed,
        "cpu_ms_a_tick": 1000 * spent / max(1, len(times) - 1),
        "resident_mb": resident / 1e6,
        "peak_resident_mb": usage.ru_maxrss * 1024 / 1e6,
        "ticks": len(times),
        "ticks_due": int(passed / interval_s) + 1,
        "series": len({series.key for series in found.series}),
        "bytes_a_tick": path.stat().st_size / len(times),
        "gap_ms_median": statistics.median(gaps),
        "gap_ms_largest": max(gaps),
        "drift_ms": times[len(gaps)] - times[0] - 1000 * interval_s * len(gaps),
    }


def exported(folder: Path) -> dict[str, float]:
    """Seconds to make the file, each way."""
    found = {}
    for way, program in (("direct", None), ("victoria_metrics", find_server())):
        if way != "direct" and program is None:
            continue
        with tempfile.TemporaryDirectory() as other:
            copy = Path(shutil.copytree(folder, Path(other) / "telemetry"))
            begun = time.monotonic()
            done = export(copy, program)
            found[way] = time.monotonic() - begun
            assert not done.problems, done.problems
            found["file_kb"] = (copy / "export.jsonl.gz").stat().st_size / 1000
    return found


def main() -> None:
    """Command line."""
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--json", action="store_true", help="one JSON object as the last line")
    cli.add_argument("--seconds", type=float, default=60.0)
    cli.add_argument("--interval-s", type=float, default=1.0)
    arguments = cli.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "telemetry"
        found = measured(folder, arguments.seconds, arguments.interval_s)
        found["export_s"] = exported(folder)
    for name, value in found.items():
        print(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
