"""`launch_stats` and `runtime_calls`: what the host asked of the runtime, and at what pace."""

from __future__ import annotations

import re

import numpy as np

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, largest_first, us
from perfproof.traces.grouping import Groups
from perfproof.traces.idle import host_idle
from perfproof.traces.intervals import Intervals, Ints, shared_length_by, union_length_by
from perfproof.traces.model import KERNEL
from perfproof.traces.short import THRESHOLD_NS

LAUNCH_COLUMNS = ("metric", "value")
CALL_COLUMNS = (
    "call",
    "count",
    "total_us",
    "fraction_of_window",
    "gpu_idle_us",
    "gpu_idle_fraction_of_window",
)
# cudaLaunchKernel, cuLaunchKernelEx, hipExtModuleLaunchKernel, cudaGraphLaunch, hipLaunchByPtr...
_LAUNCH = re.compile(r"^(?:cu|cuda|hip)\w*(?:Launch|LaunchKernel\w*|LaunchCooperative\w*|ByPtr)$")
_GRAPH = re.compile(r"^(?:cu|cuda|hip)GraphLaunch")


def calls_named(context: Context, pattern: re.Pattern[str]) -> Ints:
    """Indices of the runtime and driver calls whose name matches."""
    calls = context.trace.calls
    wanted = [name for name in np.unique(calls.name).tolist() if pattern.search(context.name(name))]
    return np.flatnonzero(np.isin(calls.name, wanted))


def launch_calls(context: Context) -> Ints:
    """Indices of the calls that start kernels or graphs."""
    return calls_named(context, _LAUNCH)


def graph_launches(context: Context) -> Ints:
    """Indices of the calls that start a graph."""
    return calls_named(context, _GRAPH)


def call_category(call: str) -> str:
    """Category of GPU work that no operation but only a call accounts for."""
    return "graph" if _GRAPH.search(call) else "runtime"


def launch_stats(context: Context) -> Rows:
    """Counts and pace of the GPU events of the window; empty where there is nothing to count."""
    gpu, inside, window = context.gpu, context.window.inside, context.window
    starts = context.trace.calls.start[launch_calls(context)]
    kernels = gpu.duration[inside & (gpu.kind == KERNEL)]
    linked = inside & context.links.linked
    wait = gpu.start[linked] - context.launched[linked]
    short = int((kernels < THRESHOLD_NS).sum())
    metrics = {
        "launches": int(((starts >= window.start) & (starts < window.host_end)).sum()),
        "gpu_events": int(inside.sum()),
        "short_kernel_count": short,
        "short_kernel_count_fraction": short / kernels.size if kernels.size else None,
        "launch_to_start_us_p50": _percentile(wait, 50),
        "launch_to_start_us_p95": _percentile(wait, 95),
        "median_kernel_us": _percentile(kernels, 50),
    }
    return Rows(LAUNCH_COLUMNS, list(metrics.items()))


def _percentile(nanoseconds: Ints, percent: float) -> float | None:
    """Linearly interpolated percentile in µs; None of nothing."""
    return float(np.percentile(nanoseconds, percent)) / 1000 if nanoseconds.size else None


def runtime_calls(context: Context) -> Rows:
    """Runtime and driver calls in the window by name; covered time, also where threads overlap.

    GPU-idle = no GPU event of the window runs and the training thread is not in the loader.
    """
    name, spans = call_spans(context)
    keyed = Groups(name)
    covered = union_length_by(keyed.of_row, *spans, len(keyed))
    idle = shared_length_by(keyed.of_row, *spans, len(keyed), host_idle(context))
    share = context.window.share
    rows = [
        (context.name(name), count, us(time), share(time), us(alone), share(alone))
        for name, count, time, alone in zip(
            keyed.keys[0].tolist(),
            keyed.count.tolist(),
            covered.tolist(),
            idle.tolist(),
            strict=True,
        )
    ]
    return Rows(CALL_COLUMNS, largest_first(rows, 2, 0))


def call_spans(context: Context) -> tuple[Ints, Intervals]:
    """Name and time of each call in the window, cut to it."""
    calls, window = context.trace.calls, context.window
    inside = np.flatnonzero((calls.end > window.start) & (calls.start < window.end))
    start = np.maximum(calls.start[inside], window.start)
    return calls.name[inside], Intervals(start, np.minimum(calls.end[inside], window.end))
