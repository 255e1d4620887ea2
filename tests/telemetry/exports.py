"""Exports for tests: series as JSON lines in a run's telemetry folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from perfproof.artifacts.inventory import take_inventory
from perfproof.schema.run import Inventory
from tests.telemetry.recorded import T0, write_run

SECONDS = range(30)
UTIL, POWER = "rocm_utilization_percentage", "rocm_average_socket_power_watts"
CLOCK, ENERGY = "rocm_sclk_clock_mhz", "rocm_energy_joules"


def series(
    name: str,
    value: Callable[[float], float],
    seconds: Iterable[float] = SECONDS,
    /,
    **labels: str,
) -> dict[str, Any]:
    """One line; `value` of the second after T0."""
    at = list(seconds)
    return {
        "metric": {"__name__": name, **labels},
        "values": [value(second) for second in at],
        "timestamps": [round((T0 + second) * 1000) for second in at],
    }


def counter(name: str, card: str = "0", per_second: float = 1.0, **labels: str) -> dict[str, Any]:
    """A hardware counter that grows steadily."""
    return series(
        "omnistat_hardware_counter", lambda s: s * per_second,
        name=name, card=card, instance="a1", source="test", **labels,
    )  # fmt: skip


def card(number: int, node: str = "a1", util: float = 90, **changes: Any) -> list[dict[str, Any]]:
    """Utilization, power, clock, memory and energy of one card."""
    labels = {"instance": node, "card": str(number)}
    clock, power = changes.get("clock", 2000.0), changes.get("power", 500.0)
    at = changes.get("seconds", SECONDS)
    return [
        series(UTIL, lambda _: util, at, **labels),
        series(POWER, lambda _: power, at, **labels),
        series(CLOCK, lambda _: clock, at, **labels),
        series("rocm_vram_used_percentage", lambda s: 10 + s, at, **labels),
        series("rocm_vram_total_bytes", lambda _: 1000.0, at, **labels),
        series(ENERGY, lambda s: power * s, at, **labels),
    ]


def host(node: str = "a1") -> list[dict[str, Any]]:
    """Processor and memory of a node."""
    names = {
        "omnistat_host_cpu_aggregate_core_utilization": 60.0,
        "omnistat_host_cpu_num_logical_cores": 64.0,
        "omnistat_host_mem_total_bytes": 1000.0,
        "omnistat_host_mem_available_bytes": 40.0,
    }
    return [series(name, lambda _, v=value: v, instance=node) for name, value in names.items()]


def job(node: str, jobid: str) -> dict[str, Any]:
    """The job-information metric of a node."""
    return series("rmsjob_info", lambda _: 1.0, instance=node, jobid=jobid, user="who")


def write_lines(path: Path, lines: Sequence[dict[str, Any] | str]) -> Path:
    """Lines as they are (text) or as JSON, gzipped."""
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def export_run(root: Path, lines: Sequence[dict[str, Any] | str], **changes: Any) -> Inventory:
    """A run as `write_run` makes it with an export in place of the table."""
    write_run(root, **changes)
    (root / "telemetry.csv").unlink()
    write_lines(root / "telemetry" / "export.jsonl.gz", lines)
    return take_inventory(root, "artifacts/recorded")
