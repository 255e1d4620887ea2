"""A small recorded run: log with step times, meta file, telemetry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from perfproof.artifacts.inventory import take_inventory
from perfproof.schema.run import Inventory

T0 = 1_700_000_000.0
HEADER = (
    "unix_ts,gpu,util_gpu_pct,util_mem_pct,mem_used_mib,power_w,sm_clock_mhz,temp_c,energy_mj,"
    "throttle_reasons"
)
STEPS = [T0 + 10 + 0.5 * n for n in range(24)]  # first steady 11.5, last 21.5


def row(second: float, gpu: int = 0, util: float = 80, energy: float | None = None) -> str:
    """A sample `second` seconds after T0; 100 W."""
    counter = 100_000 * second if energy is None else energy
    throttle = 4 if int(second) % 2 else 0
    return f"{T0 + second},{gpu},{util},40,{1000 + second:g},100,1900,60,{counter},{throttle}"


def write_run(
    root: Path,
    rows: list[str] | None = None,
    steps: list[float] | None = None,
    record: Callable[[float], str] = lambda t: f"[lab] step i=0 t={t:.6f} dt=0.5",
    span: tuple[float, float] | None = (T0, T0 + 30),
) -> Inventory:
    """A run that starts at T0 and lasts 30 s, sampled once a second."""
    root.mkdir(parents=True, exist_ok=True)
    if rows is None:
        rows = [row(second) for second in range(30)]
    (root / "telemetry.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    lines = [record(time) for time in (STEPS if steps is None else steps)]
    (root / "log_rank0.txt").write_text("\n".join(["start", *lines, "end"]) + "\n")
    if span:
        (root / "meta.json").write_text(json.dumps({"t_start": span[0], "t_end": span[1]}))
    return take_inventory(root, "artifacts/recorded")
