"""ORBIT-2's older `intermediate_downscaling`: the time of every tenth batch, the loss of an epoch.

No line names a rank. When several ranks wrote to one log, the first line about a batch or an epoch
counts and its repetitions do not.
"""

from __future__ import annotations

import re

from perfproof.foms.formats.base import END, NUMBER, LogFormat
from perfproof.foms.log import Log
from perfproof.foms.step_table import StepTable
from perfproof.schema.foms import StepTimeSource

_LINE = re.compile(
    rb"\n(?:Starting epoch (?P<start>[0-9]{1,9})\b"
    rb"|Batch (?P<batch>[0-9]{1,9}): (?P<time>" + NUMBER + rb") seconds"
    rb"|Epoch (?P<end>[0-9]{1,9}) completed\. Loss: (?P<loss>" + NUMBER + rb")" + END + rb")"
)


class Orbit2Downscaling(LogFormat):
    """Batch and epoch lines of the older trainer."""

    name = "orbit2_downscaling"
    trainer = "orbit2"
    needles = (b"Starting epoch ", b" completed. Loss: ")

    def __init__(self) -> None:
        self.table = StepTable()
        self.epoch = 0
        self.known: set[int] = set()
        self.losses: dict[int, float] = {}
        self.non_finite = 0

    def feed(self, data: bytes) -> None:
        """Read one block."""
        for match in _LINE.finditer(b"\n" + data):
            if match["start"]:
                self._enter(int(match["start"]))
            elif match["batch"]:
                self._batch(int(match["batch"]), float(match["time"]))
            else:
                self._end(int(match["end"]), float(match["loss"]))

    def _enter(self, epoch: int) -> None:
        if epoch > self.epoch:
            self.epoch = epoch
            self.known.clear()

    def _batch(self, index: int, seconds: float) -> None:
        if index in self.known:
            return
        self.known.add(index)
        row = self.table.lines((0,), self.epoch, index)
        if row is not None:
            self.table.set_time(row, seconds)

    def _end(self, epoch: int, loss: float) -> None:
        if epoch not in self.losses:
            self.losses[epoch] = loss
            self.non_finite += not abs(loss) < float("inf")
        self._enter(epoch + 1)

    @property
    def found(self) -> bool:
        """True once a step or an epoch was read."""
        return bool(len(self.table) or self.losses)

    def finish(self, log: Log) -> None:
        """Add the steps and epoch losses."""
        log.add_table(StepTimeSource.BATCH_SECONDS, self.table)
        log.epoch_losses.update(self.losses)
        log.non_finite += self.non_finite


FORMAT = Orbit2Downscaling
