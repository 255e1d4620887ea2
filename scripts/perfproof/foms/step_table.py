"""Steps as columns: filled line by line while a log is read, then used as arrays."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.bool_]

NO_LOSS, FINITE, NON_FINITE = 0, 1, 2

# Ranks of a job drift apart in a merged log by a buffer of output, far below this many steps.
_REMEMBERED_STEPS = 8192


class StepTable:
    """Steps in the order of the log: times and losses of one rank, batch sizes of all ranks.

    The rank is the lowest one that the log shows. 34 bytes a step, whatever the number of ranks,
    as long as the ranks of a step have equal batches.
    """

    def __init__(self) -> None:
        self.rank: int | None = None
        self.highest_rank = 0
        self._epoch, self._index = array("i"), array("i")
        self._time, self._loss = array("d"), array("d")
        self._size, self._reports = array("i"), array("i")
        self._seen, self._loss_state, self._profiled = array("b"), array("b"), array("b")
        self._mixed: dict[int, list[int]] = {}
        self._recent: dict[tuple[int, int], int] = {}
        self._newest: int | None = None

    def __len__(self) -> int:
        return len(self._epoch)

    def lines(
        self, ranks: Sequence[int], epoch: int, index: int, sizes: Sequence[int] = ()
    ) -> int | None:
        """Note lines of `ranks` about one step, and the batch `sizes` known of it.

        Returns the step's row if the timed rank is among them, else None.
        """
        if self.rank is None or min(ranks) < self.rank:
            self._time_rank(min(ranks))
        self.highest_rank = max(self.highest_rank, *ranks)
        timed = self.rank in ranks
        row = self._recent.get((epoch, index))
        if row is None or (timed and self._seen[row]):
            row = self._new_row(epoch, index, restarted=row is not None)
        if sizes:
            self._add_sizes(row, sizes)
        if not timed:
            return None
        self._seen[row] = 1
        self._newest = row
        return row

    def set_loss(self, row: int, loss: float) -> None:
        """The loss of a step; NaN and infinity are values too."""
        self._loss[row] = loss
        self._loss_state[row] = FINITE if math.isfinite(loss) else NON_FINITE

    def set_time(self, row: int, seconds: float) -> None:
        """The duration of a step."""
        self._time[row] = seconds

    def set_profiled(self, row: int) -> None:
        """The step ran under the profiler."""
        self._profiled[row] = 1

    def time_newest(self, seconds: float) -> None:
        """The duration of the newest step of the timed rank, unless it has one."""
        if self._newest is not None and math.isnan(self._time[self._newest]):
            self._time[self._newest] = seconds

    def _time_rank(self, rank: int) -> None:
        """Times and losses so far are of a rank that is not the lowest: forget them."""
        self.rank, self._newest = rank, None
        for row in range(len(self)):
            self._time[row], self._loss_state[row], self._seen[row] = math.nan, NO_LOSS, 0

    def _new_row(self, epoch: int, index: int, restarted: bool) -> int:
        if restarted:  # the same step again: a second attempt wrote to the same log
            self._recent.clear()
        elif len(self._recent) >= _REMEMBERED_STEPS:
            self._recent = dict(list(self._recent.items())[_REMEMBERED_STEPS // 2 :])
        row = len(self)
        self._recent[epoch, index] = row
        self._epoch.append(epoch)
        self._index.append(index)
        self._time.append(math.nan)
        self._loss.append(math.nan)
        self._size.append(0)
        for column in (self._reports, self._seen, self._loss_state, self._profiled):
            column.append(0)
        return row

    def _add_sizes(self, row: int, sizes: Sequence[int]) -> None:
        reports = self._reports[row]
        if reports == 0:
            self._size[row] = sizes[0]
        if row in self._mixed:
            self._mixed[row] += sizes
        elif sizes.count(self._size[row]) != len(sizes):
            self._mixed[row] = [self._size[row]] * reports + list(sizes)
        self._reports[row] = reports + len(sizes)

    def add_sizes_of(self, other: StepTable) -> None:
        """Add the batch sizes that another rank's log gives for the same steps."""
        for row in range(min(len(self), len(other))):
            step = self._epoch[row], self._index[row]
            if step != (other._epoch[row], other._index[row]):
                return
            if other._reports[row]:
                self._add_sizes(row, other._mixed.get(row) or [other._size[row]])

    def steps(self) -> Steps:
        """The table as arrays, without steps that only other ranks reported.

        The arrays share the table's memory where no step is left out: read the whole log first.
        """
        seen = np.asarray(self._seen).astype(bool)
        rows = slice(None) if seen.all() else seen
        place = np.cumsum(seen) - 1
        return Steps(
            epoch=np.asarray(self._epoch)[rows],
            index=np.asarray(self._index)[rows],
            time_s=np.asarray(self._time)[rows],
            loss=np.asarray(self._loss)[rows],
            loss_state=np.asarray(self._loss_state)[rows],
            profiled=np.asarray(self._profiled)[rows].astype(bool),
            size=np.asarray(self._size)[rows],
            reports=np.asarray(self._reports)[rows],
            mixed={int(place[row]): sizes for row, sizes in self._mixed.items() if seen[row]},
        )


@dataclass(frozen=True)
class Steps:
    """Steps of a run in order; all columns have shape (steps,)."""

    epoch: Integers
    index: Integers
    time_s: Floats  # NaN: not printed
    loss: Floats
    loss_state: Integers
    profiled: Flags
    size: Integers  # samples of the first rank that reported
    reports: Integers  # ranks that reported a batch size
    mixed: dict[int, list[int]]  # sizes of all reports, for steps where they differ

    def __len__(self) -> int:
        return len(self.epoch)
