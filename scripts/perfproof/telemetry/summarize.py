"""Sum up a run's telemetry over its steady window."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from perfproof.core.errors import InputError
from perfproof.core.files import digest_file, read_record, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.schema.base import Problem, Reason
from perfproof.schema.run import Artifact, Inventory, Role
from perfproof.schema.telemetry import GpuTelemetry, TelemetrySummary
from perfproof.schema.traces import TraceSummary
from perfproof.telemetry.read import Telemetry, read_telemetry
from perfproof.telemetry.window import Window, profiled_spans, steady_window

# NVML clock event reasons (nvmlClocksEventReasons): software power cap; thermal, software and
# hardware.
_POWER_CAP, _THERMAL = 0x04, 0x20 | 0x40
_MIB = 1 << 20
_FIELDS = tuple(
    name for name in GpuTelemetry.model_fields if name not in ("gpu", "samples", "reasons")
)


def summarize(inventory: Inventory, traces: TraceSummary | None = None) -> TelemetrySummary:
    """Telemetry of one run; without telemetry all values are null with that reason.

    `traces` says when the profiler recorded: samples of that time do not count.
    """
    artifacts = inventory.of(Role.TELEMETRY)
    if not artifacts:
        return _empty(inventory.run_id, None, Reason.NO_TELEMETRY, [])
    first, *others = artifacts
    problems = [
        Problem(where=other.path, what=f"not read; expected one telemetry file, {first.path}")
        for other in others
    ]
    try:
        telemetry = _read(inventory, first)
    except InputError as fault:
        what = f"{fault.found}; expected {fault.expected}"
        problems.append(Problem(where=first.path, what=what))
        return _empty(inventory.run_id, first.path, Reason.UNREADABLE, problems)
    window = steady_window(inventory, profiled_spans(traces) if traces else ())
    return _summary(inventory.run_id, first, telemetry, window, problems)


def _read(inventory: Inventory, artifact: Artifact) -> Telemetry:
    """The samples of the file that the inventory lists. Raises InputError where it is another."""
    path = Path(inventory.root) / artifact.path
    if path.is_file() and digest_file(path) != artifact.blake3:
        found = "changed since the inventory was taken, so not used"
        raise InputError(path, found, "the same bytes")
    return read_telemetry(path)


def _empty(
    run_id: str, file: str | None, reason: Reason, problems: list[Problem]
) -> TelemetrySummary:
    nulls = ["window_start_unix_s", "window_end_unix_s", "sampling_interval_s"]
    return TelemetrySummary(
        run_id=run_id,
        file=file,
        window_start_unix_s=None,
        window_end_unix_s=None,
        sampling_interval_s=None,
        gpus=[],
        problems=problems,
        reasons=dict.fromkeys([*nulls, *([] if file else ["file"])], reason),
    )


def _summary(
    run_id: str, artifact: Artifact, telemetry: Telemetry, window: Window, problems: list[Problem]
) -> TelemetrySummary:
    problems += [Problem(where=artifact.path, what=what) for what in telemetry.problems]
    interval = _interval(telemetry.samples)
    numbers = {
        "window_start_unix_s": window.start,
        "window_end_unix_s": window.end,
        "sampling_interval_s": interval,
    }
    reasons = {name: Reason.NOT_RECORDED for name, value in numbers.items() if value is None}
    if interval is None:
        reasons["sampling_interval_s"] = Reason.TOO_FEW_VALUES
    return TelemetrySummary(
        run_id=run_id,
        file=artifact.path,
        window_kind=window.kind,
        excluded_unix_s=window.excluded,
        gpus=[
            _gpu(gpu, telemetry.samples[telemetry.samples["gpu"] == gpu], window)
            for gpu in sorted(set(telemetry.samples["gpu"].tolist()))
        ],
        problems=[*problems, *window.problems],
        reasons=reasons,
        **numbers,
    )


def _interval(samples: pd.DataFrame) -> float | None:
    steps = samples.groupby("gpu")["unix_ts"].diff().dropna()
    return None if steps.empty else float(steps.median())


def _gpu(gpu: int, rows: pd.DataFrame, window: Window) -> GpuTelemetry:
    """One GPU. Only samples of steady time count: none of them means null, never an old value."""
    if not window.stretches:
        return GpuTelemetry(
            gpu=gpu,
            samples=0,
            reasons=dict.fromkeys(_FIELDS, Reason.NOT_RECORDED),
            **dict.fromkeys(_FIELDS),
        )
    stretch = window.stretch_of(rows["unix_ts"])
    inside = rows[stretch >= 0]
    values = {**_values(inside), **_energy(inside, stretch[stretch >= 0])}
    return GpuTelemetry(
        gpu=gpu,
        samples=len(inside),
        reasons={k: v for k, v in values.items() if isinstance(v, Reason)},
        **{k: None if isinstance(v, Reason) else v for k, v in values.items()},
    )


def _values(inside: pd.DataFrame) -> dict[str, float | int | Reason]:
    memory = _reduce(inside, "mem_used_mib", "max")
    return {
        "utilization_mean_percent": _reduce(inside, "util_gpu_pct", "mean"),
        "memory_busy_mean_percent": _reduce(inside, "util_mem_pct", "mean"),
        "power_mean_w": _reduce(inside, "power_w", "mean"),
        "memory_used_max_bytes": memory if isinstance(memory, Reason) else round(memory * _MIB),
        "sm_clock_mean_mhz": _reduce(inside, "sm_clock_mhz", "mean"),
        "temperature_max_c": _reduce(inside, "temp_c", "max"),
        "power_throttle_fraction": _bits(inside, _POWER_CAP),
        "thermal_throttle_fraction": _bits(inside, _THERMAL),
    }


def _column(inside: pd.DataFrame, name: str) -> pd.Series[float] | Reason:
    if name not in inside.columns:
        return Reason.NOT_RECORDED
    values = inside[name].dropna()
    return Reason.TOO_FEW_VALUES if values.empty else values


def _reduce(inside: pd.DataFrame, name: str, how: str) -> float | Reason:
    values = _column(inside, name)
    return values if isinstance(values, Reason) else float(values.agg(how))


def _bits(inside: pd.DataFrame, mask: int) -> float | Reason:
    values = _column(inside, "throttle_reasons")
    if isinstance(values, Reason):
        return values
    return float((np.bitwise_and(values.to_numpy().astype(np.int64), mask) != 0).mean())


def _energy(inside: pd.DataFrame, stretch: pd.Series[int]) -> dict[str, float | Reason]:
    """Joules between neighbouring samples of the same stretch, and the seconds between them."""
    counter = _column(inside, "energy_mj")
    if isinstance(counter, Reason):
        return dict.fromkeys(("energy_j", "energy_span_s"), counter)
    together = stretch.loc[counter.index].diff() == 0
    joules = (counter.diff() / 1000)[together]
    seconds = inside["unix_ts"].loc[counter.index].diff()[together]
    if joules.empty:
        return dict.fromkeys(("energy_j", "energy_span_s"), Reason.TOO_FEW_VALUES)
    if (joules < 0).any():
        return dict.fromkeys(("energy_j", "energy_span_s"), Reason.COUNTER_RESET)
    return {"energy_j": float(joules.sum()), "energy_span_s": float(seconds.sum())}


def step(arguments: argparse.Namespace) -> Status:
    """Read the inventory, write the summary."""
    traces = read_record(arguments.traces, TraceSummary) if arguments.traces else None
    found = summarize(read_record(arguments.inventory, Inventory), traces)
    write_record(arguments.out, found)
    done = "no telemetry" if found.file is None else f"{len(found.gpus)} GPUs"
    return ok_or_partial([f"{p.where}: {p.what}" for p in found.problems], done)


def main() -> None:
    """Command line."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    arguments.add_argument("--traces", type=Path, help="tables/trace_summary.json")
    arguments.add_argument("--out", type=Path, required=True, help="telemetry_summary.json")
    run(step, arguments.parse_args())


if __name__ == "__main__":
    main()
