"""How fast an export becomes figures, and in how much memory.

`python -m benchmarks.telemetry [--json] [--hours 1] [--hertz 10] [--cards 16]`

Writes an export of that many cards with eight metrics each, then reads it and computes every
figure in a fresh process, three times: wall clock, processor time, peak memory. Samples are values
of one series. The baseline is `json.loads` a line and a plain loop for one mean a series. A server
is timed on the same file where there is one, import and queries together.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from perfproof.core.victoria import binary
from perfproof.telemetry.derive import complete
from perfproof.telemetry.export import read_export
from perfproof.telemetry.figures import Scene, figures
from perfproof.telemetry.victoria import by_promql

T0_MS = 1_700_000_000_000
REPEATS = 3
GAUGES = {
    "rocm_utilization_percentage": (90.0, 5.0, 0),
    "rocm_average_socket_power_watts": (600.0, 30.0, 1),
    "rocm_sclk_clock_mhz": (1900.0, 50.0, 0),
    "rocm_temperature_celsius": (65.0, 3.0, 1),
    "rocm_vram_used_percentage": (55.0, 1.0, 2),
}
COUNTERS = {"rocm_energy_joules": 60.0, "rocm_xgmi_total_read_kilobytes": 1e6}
Result = dict[str, Any]


def write(path: Path, hours: float, hertz: float, cards: int) -> int:
    """The export; returns its number of samples."""
    count = round(hours * 3600 * hertz)
    times = T0_MS + (np.arange(count) * (1000 / hertz)).astype(np.int64)
    stamps = ",".join(map(str, times.tolist()))
    written = 0
    with gzip.open(path, "wt", compresslevel=1, encoding="ascii") as stream:
        for card in range(cards):
            for name, values in _metrics(np.random.default_rng(card), count):
                metric = {"__name__": name, "instance": f"n{card // 8}", "card": str(card % 8)}
                numbers = ",".join(map(repr, values.tolist()))
                head = json.dumps(metric)
                stream.write(f'{{"metric":{head},"values":[{numbers}],"timestamps":[{stamps}]}}\n')
                written += count
    return written


def _metrics(random: np.random.Generator, count: int) -> Iterator[tuple[str, Any]]:
    for name, (mean, spread, digits) in GAUGES.items():
        yield name, np.round(random.normal(mean, spread, count), digits)
    for name, step in COUNTERS.items():
        yield name, np.round(np.cumsum(random.uniform(0, 2 * step, count)), 3)
    yield "rocm_vram_total_bytes", np.full(count, 2.0**38)


def ours(path: Path) -> Result:
    """Read and compute every figure."""
    begin = time.perf_counter()
    store = complete(read_export(path))
    read = time.perf_counter()
    found = figures(Scene(store, [_window(path)]))
    return {
        "read_s": read - begin,
        "figures_s": time.perf_counter() - read,
        "samples": store.samples,
        "power": round(next(one.value or 0.0 for one in found if one.id == "power"), 6),
    }


def _window(path: Path) -> tuple[int, int]:
    """Nearly all of it."""
    return T0_MS + 1, T0_MS + int(json.loads(path.with_suffix(".json").read_text())["last_ms"]) - 1


def naive(path: Path) -> Result:
    """The mean of each series with the standard library alone."""
    begin = time.perf_counter()
    samples, power = 0, list[float]()
    with gzip.open(path, "rb") as lines:
        for text in lines:
            line = json.loads(text)
            pairs = zip(line["timestamps"], line["values"], strict=True)
            low, high = _window(path)
            inside = [value for at, value in pairs if low <= at <= high]
            samples += len(line["values"])
            if line["metric"]["__name__"] == "rocm_average_socket_power_watts":
                power.append(statistics.fmean(inside))
    took = time.perf_counter() - begin
    return {"read_s": took, "samples": samples, "power": round(statistics.fmean(power), 6)}


def server(path: Path) -> Result:
    """Import into VictoriaMetrics and ask every query."""
    program = binary()
    assert program is not None
    begin = time.perf_counter()
    store = complete(read_export(path))
    with by_promql(program, store) as asked:
        loaded = time.perf_counter()
        found = figures(Scene(store, [_window(path)], None, asked.readings))
        end = time.perf_counter()
    power = next(one.value or 0.0 for one in found if one.id == "power")
    return {"read_s": loaded - begin, "figures_s": end - loaded, "samples": store.samples,
            "power": round(power, 6)}  # fmt: skip


TASKS: dict[str, Callable[[Path], Result]] = {"ours": ours, "naive": naive, "server": server}


def measured(task: str, path: Path, repeats: int) -> Result:
    """Medians over fresh processes."""
    command = [sys.executable, "-m", "benchmarks.telemetry", "--task", task, "--file", str(path)]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(repeats)]
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def one_task(task: str, path: Path) -> Result:
    """In this process."""
    wall, processor = time.perf_counter(), time.process_time()
    found = TASKS[task](path)
    found["wall_s"] = time.perf_counter() - wall
    found["processor_s"] = time.process_time() - processor
    found["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
    found["samples_per_s"] = found["samples"] / found["wall_s"]
    return found


def compared(hours: float, hertz: float, cards: int, repeats: int, baselines: bool) -> Result:
    """Write the file, measure all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.jsonl.gz"
        samples = write(path, hours, hertz, cards)
        last = {"last_ms": int((round(hours * 3600 * hertz) - 1) * 1000 / hertz)}
        path.with_suffix(".json").write_text(json.dumps(last))
        result: Result = {"samples": samples, "file_mb": path.stat().st_size / 1e6,
                          "cores": os.cpu_count()}  # fmt: skip
        result["ours"] = measured("ours", path, repeats)
        if baselines:
            result["naive"] = measured("naive", path, 1)
            if binary():
                result["server"] = measured("server", path, 1)
            assert len({result[n]["power"] for n in TASKS if n in result}) == 1
    return result


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--hertz", type=float, default=10.0)
    parser.add_argument("--cards", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--no-baselines", action="store_true", help="time this package only")
    parser.add_argument("--task", choices=sorted(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        print(json.dumps(one_task(given.task, given.file)))
        return
    result = compared(given.hours, given.hertz, given.cards, given.repeats, not given.no_baselines)
    if given.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['samples'] / 1e6:.1f} M samples, {result['file_mb']:.0f} MB")
    for name in TASKS:
        if name in result:
            one = result[name]
            rate = one["samples_per_s"] / 1e6
            print(f"{name:7s} {one['wall_s']:7.2f} s, {rate:5.2f} M samples/s, "
                  f"peak {one['peak_mb']:.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
