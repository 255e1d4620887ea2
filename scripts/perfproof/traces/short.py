"""`short_kernel_histogram` and `short_kernels_summary`: kernels under 10 µs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Rows, us
from perfproof.traces.intervals import Ints
from perfproof.traces.model import KERNEL
from perfproof.traces.timeline import span

THRESHOLD_NS = 10_000
BINS = 100
HISTOGRAM_COLUMNS = ("bin_start", "bin_end", "count")
SUMMARY_COLUMNS = (
    "Parent cpu_op",
    "Input dims",
    "Input strides",
    "Concrete Inputs",
    "Kernel name",
    "Short Kernel duration (µs) sum",
    "Short Kernel count",
    "Short Kernel duration (µs) mean",
    "Short Kernel duration (µs) percent of total time",
)
_ABSENT = Raw(b"")


class _ShapeArgs(
    msgspec.Struct,
    gc=False,
    rename={"dims": "Input Dims", "strides": "Input Strides", "concrete": "Concrete Inputs"},
):
    dims: Raw = _ABSENT
    strides: Raw = _ABSENT
    concrete: Raw = _ABSENT


_SHAPES = msgspec.json.Decoder(_ShapeArgs)
_Shapes = tuple[bytes, bytes, bytes]


def short_kernel_tables(context: Context) -> dict[str, Rows]:
    """Both tables, over all kernels of the file."""
    gpu = context.gpu
    short = np.flatnonzero((gpu.kind == KERNEL) & (gpu.duration < THRESHOLD_NS))
    return {
        "short_kernel_histogram": _histogram(gpu.duration[short] / 1000),
        "short_kernels_summary": _summary(context, short),
    }


def _histogram(durations: np.ndarray[Any, np.dtype[np.float64]]) -> Rows:
    if not durations.size:
        return Rows(HISTOGRAM_COLUMNS, [])
    counts, edges = np.histogram(durations, bins=BINS)
    rows = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    return Rows(HISTOGRAM_COLUMNS, list(rows))


def _summary(context: Context, short: Ints) -> Rows:
    """By operation, its inputs, and kernel."""
    shapes = _shapes_of(context, np.unique(context.links.op[short]).tolist())
    totals: defaultdict[tuple[str | None, _Shapes, str], list[int]] = defaultdict(list)
    for event, op in zip(short.tolist(), context.links.op[short].tolist(), strict=True):
        parent = context.name(int(context.trace.ops.name[op])) if op >= 0 else None
        kernel = context.name(int(context.gpu.name[event]))
        totals[parent, shapes[op], kernel].append(int(context.gpu.duration[event]))
    total = max(span(context.all_busy), 1)
    ordered = sorted(totals.items(), key=lambda item: (-sum(item[1]), item[0][2], str(item[0])))
    rows = [
        (
            parent,
            *(tuple_text(text) for text in inputs),
            kernel,
            us(sum(times)),
            len(times),
            us(sum(times)) / len(times),
            100 * sum(times) / total,
        )
        for (parent, inputs, kernel), times in ordered
    ]
    return Rows(SUMMARY_COLUMNS, rows)


def _shapes_of(context: Context, ops: list[int]) -> dict[int, _Shapes]:
    return {op: _shapes(context.trace.ops.args[op]) if op >= 0 else (b"", b"", b"") for op in ops}


def _shapes(args: Raw) -> _Shapes:
    try:
        found = _SHAPES.decode(args) if args else _ShapeArgs()
    except (msgspec.MsgspecError, RecursionError):
        found = _ShapeArgs()
    return bytes(found.dims), bytes(found.strides), bytes(found.concrete)


def tuple_text(text: bytes) -> str | None:
    """A JSON list as the text of a Python tuple, the way TraceLens prints it."""
    if not text:
        return None
    try:
        return str(_tuples(msgspec.json.decode(text)))
    except (msgspec.MsgspecError, RecursionError):
        return text.decode()  # numbers or nesting beyond what can be read


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
