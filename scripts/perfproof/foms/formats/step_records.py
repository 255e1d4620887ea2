"""Step records: `[<tag>] step key=value …`, which instrumented runs print for every step.

Keys: `dt` (seconds, required), `i` (index of the step), `epoch`, `rank`, `loss`, `profiled` (0 or
1), and one of `samples`, `graphs` or `y` (a shape such as 8x3x384x768) for the batch that the rank
really had. Others are ignored. `[<tag>] … peak_reserved_gb=X` is the memory peak, 10^9 bytes.
"""

from __future__ import annotations

import math
import re

from perfproof.foms.formats.base import DECIMAL, END, GB, LogFormat, number
from perfproof.foms.log import Log
from perfproof.foms.step_table import StepTable
from perfproof.schema.foms import StepTimeSource

_RECORD = re.compile(rb"\[[A-Za-z_]\w*\] step ([^\n[]*)")
_PEAK = re.compile(rb"peak_reserved_gb=(" + DECIMAL + rb")" + END)
_SIZE_KEYS = (b"samples", b"graphs", b"y")


class StepRecords(LogFormat):
    """Step records of any tag."""

    name = "step_records"
    trainer = None
    needles = (b"] step ", b"peak_reserved_gb=")

    def __init__(self) -> None:
        self.table = StepTable()
        self.non_finite = 0
        self.reserved_gb: float | None = None

    def feed(self, data: bytes) -> None:
        """Read one block."""
        for match in _RECORD.finditer(data):
            parts = (part.partition(b"=") for part in match[1].split())
            fields = {key: value for key, _, value in parts}
            if b"dt" in fields:
                self._step(fields)
        for value in set(_PEAK.findall(data)):
            self.reserved_gb = max(self.reserved_gb or 0.0, float(value))

    def _step(self, fields: dict[bytes, bytes]) -> None:
        rank, epoch, index = (_integer(fields.get(key)) for key in (b"rank", b"epoch", b"i"))
        loss, seconds = number(fields.get(b"loss")), number(fields[b"dt"])
        if loss is not None and not math.isfinite(loss):
            self.non_finite += 1
        if index is None:
            index = len(self.table)
        size = _size(fields)
        sizes = () if size is None else (size,)
        if rank is not None:
            self.table.count_ranks((rank,))
        row = self.table.lines((rank or 0,), epoch or 0, index, sizes)
        if row is None:
            return
        if loss is not None:
            self.table.set_loss(row, loss)
        if seconds is not None:
            self.table.set_time(row, seconds)
        if fields.get(b"profiled") in (b"1", b"true", b"True"):
            self.table.set_profiled(row)

    @property
    def found(self) -> bool:
        """True once a step was read."""
        return len(self.table) > 0

    def finish(self, log: Log) -> None:
        """Add the steps and the memory peak."""
        log.add_table(StepTimeSource.STEP_RECORD, self.table)
        log.non_finite += self.non_finite
        if self.reserved_gb is not None:
            log.add_reserved(self.reserved_gb * GB)


def _integer(raw: bytes | None) -> int | None:
    return int(raw) if raw is not None and raw.isdigit() and len(raw) < 10 else None


def _size(fields: dict[bytes, bytes]) -> int | None:
    """The batch of the rank: a count, or the first dimension of a shape."""
    for key in _SIZE_KEYS:
        if key in fields:
            return _integer(fields[key].partition(b"x")[0])
    return None


FORMAT = StepRecords
