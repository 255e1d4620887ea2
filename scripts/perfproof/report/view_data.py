"""Data quality, telemetry and the tables behind the plots, as rows of text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from perfproof.report.facts import window_is_steps
from perfproof.report.tables import Timeline, Tops
from perfproof.report.units import clip, number, percent, quantity, shown
from perfproof.report.view_foms import Field, joined, octets, seconds
from perfproof.schema.report import Report
from perfproof.schema.telemetry import GpuTelemetry, TelemetrySummary
from perfproof.schema.traces import RankTrace, TraceSummary

WINDOW_WORDS = {
    "steps": "marked steps",
    "gpu_span": "span of GPU events",
    "cpu_span": "span of CPU events",
    "empty": "empty",
}
SEVERITY_ORDER = {"bad": 0, "warn": 1, "info": 2}
NAME_LENGTH = 300


@dataclass(frozen=True)
class Grid:
    """A table of text. Columns named in `code` hold names, which are shown as such."""

    caption: str
    head: list[str]
    rows: list[list[str]]
    code: tuple[int, ...] = ()
    text: tuple[int, ...] = ()


def traces_grid(summary: TraceSummary) -> Grid:
    """What each rank's trace holds."""
    head = ["rank", "trace", "device", "ranks in run", "events", "GPU events", "unlinked"]
    head += ["steps", "window", "window length", "window start", "clock zero"]
    rows = [_trace_row(rank) for rank in summary.ranks]
    return Grid("Traces read", head, rows, code=(1,), text=(2, 8))


def _trace_row(rank: RankTrace) -> list[str]:
    nanoseconds = partial(quantity, unit="ns")
    return [
        str(rank.rank),
        rank.file,
        shown(rank, "device_name"),
        shown(rank, "world_size", number),
        number(rank.events),
        number(rank.gpu_events),
        number(rank.unlinked_gpu_events),
        joined(list(rank.steps)) if len(rank.steps) <= 8 else number(len(rank.steps)),
        WINDOW_WORDS["steps" if window_is_steps(rank) else rank.window_kind],
        shown(rank, "window_duration_ns", nanoseconds),
        shown(rank, "window_start_ns", _nanoseconds),
        shown(rank, "base_time_ns", _nanoseconds),
    ]


def _nanoseconds(value: int) -> str:
    return f"{value}\N{NO-BREAK SPACE}ns"


def findings_grid(report: Report) -> Grid:
    """Findings about the traces, the bad ones first."""
    found = [(f, rank) for rank in report.quality for f in rank.findings]
    found.sort(key=lambda pair: (SEVERITY_ORDER[pair[0].severity], pair[1].rank, pair[0].code))
    rows = [[f.severity, str(r.rank), f.code, number(f.value), f.message] for f, r in found]
    head = ["severity", "rank", "code", "value", "what it means"]
    return Grid("Findings", head, rows, code=(2,), text=(0, 4))


def problems_grid(report: Report) -> Grid:
    """Faults of the input files."""
    rows = [[problem.where, problem.what] for problem in report.problems]
    return Grid("Faults of the inputs", ["file", "what"], rows, code=(0,), text=(1,))


def telemetry_fields(telemetry: TelemetrySummary) -> list[Field]:
    """When and how the telemetry was taken."""
    return [
        Field("File", shown(telemetry, "file")),
        Field("Window start", shown(telemetry, "window_start_unix_s", _moment)),
        Field("Window end", shown(telemetry, "window_end_unix_s", _moment)),
        Field("Left out (profiled)", _spans(telemetry.excluded_unix_s)),
        Field("Sampling interval", shown(telemetry, "sampling_interval_s", seconds)),
    ]


def _spans(spans: list[tuple[float, float]]) -> str:
    return "; ".join(f"{_moment(start)} to {_moment(end)}" for start, end in spans) or "nothing"


def _moment(value: float) -> str:
    moment = datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def telemetry_grid(telemetry: TelemetrySummary) -> Grid:
    """One row a GPU over the steady window."""
    head = ["GPU", "samples", *(label for label, _, _ in _GPU_COLUMNS)]
    rows = [_gpu_row(gpu) for gpu in telemetry.gpus]
    return Grid("GPU telemetry over the steady window", head, rows)


def _gpu_row(gpu: GpuTelemetry) -> list[str]:
    cells = [shown(gpu, name, show) for _, name, show in _GPU_COLUMNS]
    return [str(gpu.gpu), number(gpu.samples), *cells]


_GPU_COLUMNS: list[tuple[str, str, Callable[[Any], str]]] = [
    ("utilisation, mean", "utilization_mean_percent", partial(quantity, unit="percent")),
    ("memory busy, mean", "memory_busy_mean_percent", partial(quantity, unit="percent")),
    ("power, mean", "power_mean_w", partial(quantity, unit="W")),
    ("memory, peak", "memory_used_max_bytes", octets),
    ("SM clock, mean", "sm_clock_mean_mhz", partial(quantity, unit="MHz")),
    ("temperature, peak", "temperature_max_c", partial(quantity, unit="C")),
    ("power-capped", "power_throttle_fraction", percent),
    ("heat-capped", "thermal_throttle_fraction", percent),
    ("energy", "energy_j", partial(quantity, unit="J")),
    ("energy over", "energy_span_s", seconds),
]


def timeline_grid(rows: list[Timeline]) -> Grid:
    """The numbers behind the bars."""
    head = ["rank", "computation", "exposed communication", "exposed copies", "idle", "window"]
    cells = [
        [str(r.rank)]
        + [f"{_ms(part)} ({percent(r.share(i))})" for i, part in enumerate(r.parts)]
        + [_ms(r.total_ms)]
        for r in rows
    ]
    return Grid("Time in the traced window, by rank", head, cells)


def _ms(value: float) -> str:
    return quantity(value, "ms")


def tops_grid(tops: Tops) -> Grid:
    """The kernels or operators behind the bars, with their whole names."""
    kernels = tops.kind == "top_kernels"
    what = "Kernels" if kernels else "CPU operators (own time)"
    rows = [
        [clip(t.name, NAME_LENGTH), number(t.count), quantity(t.time_us, "us"), percent(t.fraction)]
        for t in tops.rows
    ]
    head = ["kernel" if kernels else "operator", "calls", "time", "share of window"]
    return Grid(f"{what} by time, rank {tops.rank}", head, rows, code=(0,))


def inputs_grid(report: Report) -> Grid:
    """The files that every number rests on."""
    rows = [
        [item.path, item.role, octets(item.size_bytes), item.blake3]
        for item in report.provenance.inputs
    ]
    return Grid("Input files", ["file", "role", "size", "BLAKE3"], rows, (0, 3), (1,))
