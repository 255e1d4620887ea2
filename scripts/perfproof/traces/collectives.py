"""`coll_analysis`: collectives of one rank by process group, kind and size."""

from __future__ import annotations

import statistics
from collections import defaultdict

from perfproof.traces.context import Context
from perfproof.traces.csvfile import Cell, Rows, largest_first, us
from perfproof.traces.model import Collective

COLUMNS = (
    "rank",
    "Process Group Name",
    "Process Group Ranks",
    "Collective name",
    "Group size",
    "dtype",
    "In msg nelems",
    "Out msg nelems",
    "In split size",
    "Out split size",
    "stream",
    "In msg size (MB)_first",
    "Out msg size (MB)_first",
    "dur_sum",
    "dur_mean",
    "dur_std",
    "dur_min",
    "dur_max",
    "operation_count",
)
# Bytes of PyTorch's scalar types, by the names that kernels carry.
_BYTES = {
    **dict.fromkeys(("Byte", "Char", "Bool"), 1),
    **dict.fromkeys(("Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Float", "Int"), 4),
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
}


def coll_analysis(context: Context) -> Rows:
    """All kernels of the file that carry collective metadata; times in µs."""
    gpu = context.gpu
    found: defaultdict[tuple[Collective, int], list[float]] = defaultdict(list)
    for index, collective in gpu.collective.items():
        key = (collective, int(gpu.stream[index]))
        found[key].append(us(int(gpu.duration[index])))
    rows = [_row(context.rank, *key, times) for key, times in found.items()]
    return Rows(COLUMNS, largest_first(rows, 13, *range(13)))


def _row(rank: int, what: Collective, stream: int, times: list[float]) -> tuple[Cell, ...]:
    return (
        rank,
        what.process_group,
        what.ranks,
        what.name,
        what.group_size,
        what.dtype,
        what.in_nelems,
        what.out_nelems,
        what.in_split,
        what.out_split,
        stream if stream >= 0 else None,
        _megabytes(what.in_nelems, what.dtype),
        _megabytes(what.out_nelems, what.dtype),
        sum(times),
        statistics.fmean(times),
        statistics.stdev(times) if len(times) > 1 else None,
        min(times),
        max(times),
        len(times),
    )


def _megabytes(elements: int | float | None, dtype: str | None) -> float | None:
    size = _BYTES.get(dtype or "")
    return None if elements is None or size is None else elements * size / 1024**2
