"""`roofline`: achieved rates of GEMM, convolution and attention against the GPU's peaks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Raw

from perfproof.schema.gpus import GpuPeaks
from perfproof.traces.context import Context
from perfproof.traces.csvfile import Row, Rows, largest_first
from perfproof.traces.flops import FORMULAS, Inputs, OddShapesError, Work
from perfproof.traces.grouping import Groups
from perfproof.traces.intervals import Ints, union_length_by
from perfproof.traces.peaks import load_peaks, peaks_of
from perfproof.traces.short import tuple_text

COLUMNS = (
    "op",
    "category",
    "input_dims",
    "input_types",
    "concrete_inputs",
    "type",
    "count",
    "kernel_us",
    "mean_us",
    "gflop",
    "mbyte",
    "flop_per_byte",
    "tflop_s",
    "gb_s",
    "gpu",
    "peak_tflop_s",
    "peak_gb_s",
    "tflop_s_share",
    "gb_s_share",
    "bound_by",
    "roofline_us",
    "roofline_share",
    "reason",
)
_KERNEL_US, _NAME, _DIMS, _CONCRETE = 7, 0, 2, 4
# Types as the profiler writes them: type of the peak, bytes of an element.
_TYPES: dict[str, tuple[str, int]] = {
    "double": ("float64", 8),
    "float": ("float32", 4),
    "c10::Half": ("float16", 2),
    "c10::BFloat16": ("bfloat16", 2),
    "c10::Float8_e4m3fn": ("float8", 1),
    "c10::Float8_e5m2": ("float8", 1),
    "c10::Float8_e4m3fnuz": ("float8", 1),
    "c10::Float8_e5m2fnuz": ("float8", 1),
    "signed char": ("int8", 1),
}
# Kernels that take float32 and multiply in TensorFloat-32: by name, or by the instruction m16n8k8.
_TF32 = re.compile("tf32|xf32|s1688")


class _Args(
    msgspec.Struct,
    gc=False,
    rename={"dims": "Input Dims", "types": "Input type", "concrete": "Concrete Inputs"},
):
    dims: Raw = Raw(b"")
    types: Raw = Raw(b"")
    concrete: Raw = Raw(b"")


_ARGS = msgspec.json.Decoder(_Args)


class _Key(NamedTuple):
    """Calls that do the same work with the same arithmetic."""

    op: str
    dims: bytes
    types: bytes
    concrete: bytes
    tf32: bool


@dataclass
class _Row:
    """One row, filled as far as it can be; `reason` says what stopped it."""

    work: Work | None = None
    type: str | None = None
    element_bytes: int = 0
    reason: str | None = None


def roofline(context: Context, known: Sequence[GpuPeaks] | None = None) -> Rows:
    """One row for each operation, input shapes and types; over the GPU events of the window.

    An operation counts with all GPU events launched inside it; of nested ones the outermost.
    """
    names = context.trace.meta.device_names
    peaks = peaks_of(names, load_peaks() if known is None else known)
    absent = "unknown_device" if names else "device_not_recorded"
    rows = [_row(key, times, peaks, absent) for key, times in sorted(_measured(context).items())]
    return Rows(COLUMNS, largest_first(rows, _KERNEL_US, _NAME, _DIMS, _CONCRETE))


def _measured(context: Context) -> dict[_Key, list[int]]:
    """GPU time, in ns, of each call of the operations that have a formula."""
    found: defaultdict[_Key, list[int]] = defaultdict(list)
    if not len(context.trace.ops):
        return found
    inside = np.flatnonzero(context.window.inside & (context.links.op >= 0))
    launching, place = np.unique(context.links.op[inside], return_inverse=True)
    owner = _outermost(context, launching)[place]
    events, gpu = inside[owner >= 0], context.gpu
    keyed = Groups(owner[owner >= 0])
    covered = union_length_by(keyed.of_row, gpu.start[events], gpu.end[events], len(keyed))
    fast = [at for at, name in enumerate(context.trace.names) if _TF32.search(name)]
    tf32 = keyed.max(np.isin(gpu.name[events], fast).astype(np.int64))
    for op, time, is_tf32 in zip(
        keyed.keys[0].tolist(), covered.tolist(), tf32.tolist(), strict=True
    ):
        found[_key(context, op, bool(is_tf32))].append(time)
    return found


def _outermost(context: Context, ops: Ints) -> Ints:
    """For each of `ops` the outermost operation around it (or itself) with a formula, else -1."""
    names, used = context.trace.names, context.trace.ops.name
    has_formula = np.array([name in FORMULAS for name in names], np.bool_)
    parents = context.links.tree.parents()
    found, at = np.full(ops.size, -1, np.int64), ops.copy()
    while (inside := at >= 0).any():
        modelled = inside & has_formula[used[at]]
        found[modelled] = at[modelled]
        at = np.where(inside, parents[at], -1)
    return found


def _key(context: Context, op: int, tf32: bool) -> _Key:
    try:
        args = _ARGS.decode(context.trace.ops.args[op])
    except (msgspec.MsgspecError, RecursionError):
        args = _Args()
    name = context.name(int(context.trace.ops.name[op]))
    return _Key(name, bytes(args.dims), bytes(args.types), bytes(args.concrete), tf32)


def _row(key: _Key, times: list[int], peaks: GpuPeaks | None, absent: str) -> Row:
    total, count = sum(times), len(times)
    found = _work(key)
    head = (
        key.op,
        FORMULAS[key.op][0],
        tuple_text(key.dims),
        tuple_text(key.types),
        tuple_text(key.concrete),
    )
    timed = (found.type, count, total / 1e3, total / 1e3 / count)
    if found.work is None:
        return (*head, *timed, *([None] * (len(COLUMNS) - 10)), found.reason)
    flops, moved = found.work.flops, found.work.elements * found.element_bytes
    rates = (flops * count / total / 1e3, moved * count / total) if total else (None, None)
    achieved = (flops / 1e9, moved / 1e6, flops / moved if moved else None, *rates)
    reason = _no_peak(found, peaks, absent) or (None if total else "no_time")
    if reason or peaks is None or found.type is None:
        gpu = peaks.gpu if peaks else None
        return (*head, *timed, *achieved, gpu, *([None] * (len(COLUMNS) - 16)), reason)
    return (*head, *timed, *achieved, *_against(found, peaks, total / count, moved), None)


def _against(found: _Row, peaks: GpuPeaks, mean_ns: float, moved: int) -> tuple[Any, ...]:
    """Peaks, shares of them, and the time that the slower of both peaks allows."""
    assert found.work is not None
    tflops = next(figure.value for kind, figure in peaks.tflops.items() if kind == found.type)
    bandwidth = peaks.memory_gb_s.value
    compute_ns, memory_ns = found.work.flops / tflops / 1e3, moved / bandwidth
    least = max(compute_ns, memory_ns)
    return (
        peaks.gpu,
        tflops,
        bandwidth,
        compute_ns / mean_ns,
        memory_ns / mean_ns,
        "compute" if compute_ns >= memory_ns else "memory",
        least / 1e3,
        least / mean_ns,
    )


def _no_peak(found: _Row, peaks: GpuPeaks | None, absent: str) -> str | None:
    if found.reason:
        return found.reason
    if peaks is None:
        return absent
    return None if found.type in peaks.tflops else "no_peak_of_type"


def _work(key: _Key) -> _Row:
    """Operations and type of one call."""
    inputs = _inputs(key)
    if inputs is None:
        return _Row(reason="no_shapes")
    try:
        work = FORMULAS[key.op][1](inputs)
    except OddShapesError:
        return _Row(reason="odd_shapes")
    name = inputs.types[work.typed_by] if work.typed_by < len(inputs.types) else ""
    if name not in _TYPES:
        return _Row(reason="unknown_type")
    kind, size = _TYPES[name]
    return _Row(work, "tf32" if kind == "float32" and key.tf32 else kind, size)


def _inputs(key: _Key) -> Inputs | None:
    try:
        dims, types = (msgspec.json.decode(text) for text in (key.dims, key.types))
        concrete = msgspec.json.decode(key.concrete) if key.concrete else []
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not all(isinstance(part, list) for part in (dims, types, concrete)):
        return None
    return Inputs([_shape(one) for one in dims], list(map(str, types)), list(map(str, concrete)))


def _shape(value: Any) -> tuple[int, ...]:
    """A tensor's shape; empty for what is none (a scalar, a list of tensors)."""
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in value):
        return ()
    return tuple(value)
