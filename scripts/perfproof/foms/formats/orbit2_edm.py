"""ORBIT-2 as `intermediate_downscaling` prints it now, and Bayes-CAST EDM: one line set a step.

A step prints, in this order: `y.shape torch.Size([n, …` (realised batch; EDM only, any rank),
`epoch:  E batch_idx B world_rank R  loss  tensor(x` (each rank) and `my rank R. tic4-tic1 in X
seconds` (rank 0). tic4-tic1 is synchronised on both sides and excludes the wait for the batch.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from perfproof.foms import scan
from perfproof.foms.formats.base import NUMBER, LogFormat
from perfproof.foms.log import Log
from perfproof.foms.step_table import StepTable
from perfproof.schema.foms import StepTimeSource

_TIME = re.compile(rb"tic4-tic1 in\s+(" + NUMBER + rb") seconds")
_RANK = re.compile(rb"my rank ([0-9]{1,9})\. *\Z")
# A number, or a vector of one.
_VALUE = re.compile(rb"(\[)?(" + NUMBER + rb")(?(1)\]|[,)])")


# Bound on the sizes that wait for their loss line.
_MOST_RANKS = 1 << 16


@dataclass(frozen=True)
class _Losses:
    """Columns of the loss lines of a block; `at` and `value_at` are positions."""

    at: scan.Positions
    epoch: scan.Positions
    index: scan.Positions
    rank: scan.Positions
    bad: scan.Flags
    value_at: scan.Positions

    def runs(self) -> tuple[scan.Positions, scan.Positions]:
        """First line of each run of lines about the same step, and the line behind its last."""
        changes = (np.diff(self.epoch) != 0) | (np.diff(self.index) != 0)
        edges = np.flatnonzero(np.concatenate([[True], changes, [True]]))
        return (edges[:-1], edges[1:]) if len(self.at) else (edges[:0], edges[:0])


class _Run(NamedTuple):
    """Loss lines `begin` to `end` of a block: one step."""

    epoch: int
    batch: int
    begin: int
    end: int
    sizes: list[int]


class Orbit2Edm(LogFormat):
    """Step lines of ORBIT-2 and Bayes-CAST EDM."""

    name = "orbit2_edm"
    trainer = "orbit2"
    needles = (b" batch_idx ",)

    def __init__(self) -> None:
        self.table = StepTable()
        self.waiting = np.empty(0, dtype=np.int64)  # sizes not yet followed by a loss line
        self.unused = np.empty(0, dtype=np.int64)  # sizes of the last step without a loss line
        self.last_step: tuple[int, int] | None = None
        self.non_finite = 0

    def feed(self, data: bytes) -> None:
        """Read one block: sizes, losses and times, in the order in which they stand."""
        text = scan.text_of(data)
        loss, times = _losses(text), deque(_TIME.finditer(data))
        self.non_finite += int(loss.bad.sum())
        self.table.count_ranks(loss.rank)
        at, rank, value_at = loss.at.tolist(), loss.rank.tolist(), loss.value_at.tolist()
        for run in self._runs(loss, *_sizes(text)):
            ranks = rank[run.begin : run.end]
            timed = ranks.index(self.table.rank) if self.table.rank in ranks else 0
            self._times(data, times, at[run.begin + timed])
            row = self.table.lines(ranks, run.epoch, run.batch, run.sizes)
            if row is not None:
                self._loss(data, row, value_at[run.begin + ranks.index(self.table.rank)])
        self._times(data, times, len(data))

    def _runs(self, loss: _Losses, size_at: scan.Positions, size: scan.Positions) -> list[_Run]:
        """Lines in a row about one step, with the batch sizes that belong to it.

        These stand before the step's loss lines and after those of the step before. Validation may
        have left older ones there, so the last ones count, at most one a loss line.
        """
        begin, end = loss.runs()
        epoch, index = loss.epoch[begin].tolist(), loss.index[begin].tolist()
        if not epoch:
            self.waiting = np.concatenate([self.waiting, size])[-_MOST_RANKS:]
            return []
        same_step = (epoch[0], index[0]) == self.last_step
        earlier = [self.unused, self.waiting] if same_step else [self.waiting]
        size = np.concatenate([*earlier, size])
        size_at = np.concatenate([np.full(len(size) - len(size_at), -1), size_at])
        high = np.searchsorted(size_at, loss.at[end - 1])
        from_step = np.concatenate([[0], high[:-1]])
        low = np.maximum(from_step, high - (end - begin))
        self.unused, self.waiting = size[from_step[-1] : low[-1]], size[high[-1] :]
        self.last_step = epoch[-1], index[-1]
        columns = (epoch, index, begin.tolist(), end.tolist())
        sizes, bounds = size.tolist(), zip(low.tolist(), high.tolist(), strict=True)
        parts = [sizes[first:last] for first, last in bounds]
        return [_Run(*row) for row in zip(*columns, parts, strict=True)]

    def _loss(self, data: bytes, row: int, at: int) -> None:
        if value := _VALUE.match(data, at):
            self.table.set_loss(row, float(value[2]))

    def _times(self, data: bytes, times: deque[re.Match[bytes]], until: int) -> None:
        """Give times before `until` to the step that the timed rank began last."""
        while times and times[0].start() < until:
            match = times.popleft()
            rank = _RANK.search(data, max(0, match.start() - 24), match.start())
            if rank is None or int(rank[1]) == self.table.rank:
                self.table.time_newest(float(match[1]))

    @property
    def found(self) -> bool:
        """True once a step was read."""
        return len(self.table) > 0

    def finish(self, log: Log) -> None:
        """Add the steps."""
        log.add_table(StepTimeSource.TIC4_TIC1, self.table)
        log.non_finite += self.non_finite


def _sizes(text: scan.Text) -> tuple[scan.Positions, scan.Positions]:
    """Positions and batch sizes of `y.shape torch.Size([n,`."""
    start = scan.find_all(text, b"y.shape", anchor=1)
    opened, at = scan.literal(text, scan.skip_spaces(text, start + 7), b"torch.Size([")
    size, has_size, at = scan.integer(text, at)
    whole = opened & has_size & ((text[at] == ord(",")) | (text[at] == ord("]")))
    return start[whole], size[whole]


def _losses(text: scan.Text) -> _Losses:
    start = scan.find_all(text, b"epoch:", anchor=5)
    at, whole, numbers = start + 6, np.ones(len(start), dtype=bool), []
    for word in (b"", b"batch_idx", b"world_rank"):
        stands, at = scan.literal(text, scan.skip_spaces(text, at), word)
        number, has_number, at = scan.integer(text, scan.skip_spaces(text, at))
        whole &= stands & has_number
        numbers.append(number)
    stands, at = scan.literal(text, scan.skip_spaces(text, at), b"loss")
    opened, at = scan.literal(text, scan.skip_spaces(text, at), b"tensor(")
    sign = at + (text[at] == ord("["))
    first = text[sign + (text[sign] == ord("-"))]
    bad = (first == ord("n")) | (first == ord("i"))
    keep = whole & stands & opened
    return _Losses(*(column[keep] for column in (start, *numbers, bad, at)))


FORMAT = Orbit2Edm
