"""Steps as columns: filled line by line while a log is read, then used as arrays."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.bool_]

NO_LOSS, FINITE, NON_FINITE = 0, 1, 2

# Other numbers are no duration of a step (a clock that was set back, a rounded zero).
SHORTEST_S, LONGEST_S = 1e-9, 1e9

# Ranks of a job drift apart in a merged log by a buffer of output, far below this many steps.
_REMEMBERED_STEPS = 8192


class StepTable:
    """Steps in the order of the log: times and losses of one rank, batch sizes of all ranks.

    The rank is the lowest one that the log shows. 34 bytes a step, whatever the number of ranks,
    as long as the ranks of a step have equal batches.
    """

    def __init__(self) -> None:
        self.rank: int | None = None
        self.rank_lines = Counter[int]()  # step lines by the rank they name
        self.bad_times = 0
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
        """The duration of a step; NaN is not known, and what cannot be one is only counted."""
        if SHORTEST_S <= seconds <= LONGEST_S:
            self._time[row] = seconds
        elif not math.isnan(seconds):
            self.bad_times += 1

    def count_ranks(self, ranks: Iterable[int] | Integers) -> None:
        """Note which ranks step lines name."""
        if isinstance(ranks, np.ndarray):
            found, lines = np.unique(ranks, return_counts=True)
            self.rank_lines.update(dict(zip(found.tolist(), lines.tolist(), strict=True)))
        else:
            self.rank_lines.update(ranks)

    def set_profiled(self, row: int) -> None:
        """The step ran under the profiler."""
        self._profiled[row] = 1

    def time_newest(self, seconds: float) -> None:
        """The duration of the newest step of the timed rank, unless it has one."""
        if self._newest is not None and math.isnan(self._time[self._newest]):
            self.set_time(self._newest, seconds)

    def _time_rank(self, rank: int) -> None:
        """Times and losses so far are of a rank that is not the lowest: forget them."""
        self.rank, self._newest, self.bad_times = rank, None, 0
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
        own = {step: row for row, step in enumerate(self._visits())}
        for at, step in enumerate(other._visits()):
            row = own.get(step)
            if row is not None and other._reports[at]:
                self._add_sizes(row, other._mixed.get(at) or [other._size[at]])

    def _visits(self) -> Iterator[tuple[int, int, int]]:
        """Epoch and index of each row, and how often the two have come up."""
        times = Counter[tuple[int, int]]()
        for step in zip(self._epoch, self._index, strict=True):
            times[step] += 1
            yield *step, times[step]

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

    def restarts(self) -> Flags:
        """First step of each further attempt in the same log, shape (steps,).

        The epoch or, within an epoch, the index does not go up: the run was started anew.
        """
        back = np.zeros(len(self), dtype=bool)
        epoch, index = np.diff(self.epoch), np.diff(self.index)
        back[1:] = (epoch < 0) | ((epoch == 0) & (index <= 0))
        return back

    def epoch_starts(self) -> Flags:
        """First step of each visit to an epoch, shape (steps,)."""
        starts = np.ones(len(self), dtype=bool)
        starts[1:] = np.diff(self.epoch) != 0
        return starts | self.restarts()

    def visits(self) -> Integers:
        """Number of the visit to an epoch, shape (steps,): an epoch begun anew is another."""
        return np.cumsum(self.epoch_starts()) - 1
