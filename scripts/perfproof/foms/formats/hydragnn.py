"""HydraGNN: progress bars and epoch lines. It prints no time of a step.

`Train:` bars reach 100 % twice, with the smoothed rate and then, at close, with the average over
the epoch; only starts and ends are kept, and `foms.epochs` makes one record an epoch of them.
`Local timer` lines hold seconds of the whole job and are never read as a rate.
"""

from __future__ import annotations

import math
import re

from perfproof.foms.formats.base import DECIMAL, GB, LogFormat, number, rank_before
from perfproof.foms.log import BarEvent, Log

_BAR = re.compile(rb"Train: +(?:0|100)%\|[^|\n]*\| *([0-9]{1,9})/([0-9]{1,9}) \[([^]\n]*)\]")
_RATE = re.compile(rb"(?<![\w.])(" + DECIMAL + rb")(it/s|s/it|ms/it)")
_EPOCH = re.compile(
    rb"Epoch: ([0-9]{1,9}), Train Loss: ([^\s,]+)"
    rb"(?:, Val Loss: ([^\s,]+))?(?:, Test Loss: ([^\s,]+))?"
)
_TASKS = re.compile(rb"Tasks Train Loss: \[([^]\n]*)\]")
_PROFILED = re.compile(rb"Total number of profiled events: [0-9]+ at epoch ([0-9]{1,9})\b")
# The bytes over 10^9: allocated, then reserved.
_MEMORY = re.compile(
    rb"Max memory allocated after optimizer step: [0-9.]+ GB (" + DECIMAL + rb") GB"
)
_REQUESTED = re.compile(rb"\[precision-diagnostic\] requested=(\w+)")
_PARAMETERS = re.compile(rb"model_param_dtype=torch\.(\w+)")
_DIAGNOSTIC = b"precision-diagnostic"
_FALLBACK = b"falling back to full precision"
_DTYPES = {b"fp64": "float64", b"fp32": "float32", b"bf16": "bfloat16"}


class HydraGnn(LogFormat):
    """Bars, epoch losses, memory and precision of HydraGNN."""

    name = "hydragnn"
    trainer = "hydragnn"
    needles = (b"Train: ", b", Train Loss: ")

    def __init__(self) -> None:
        self.events: list[BarEvent] = []
        self.losses: list[tuple[int, int, float]] = []
        self.profiled: set[int] = set()
        self.non_finite = 0
        self.reserved_gb: float | None = None
        self.dtype: str | None = None

    def feed(self, data: bytes) -> None:
        """Read one block."""
        events = [(bar.start(), _bar_event(bar)) for bar in _BAR.finditer(data)]
        events += [(line.start(), self._epoch(data, line)) for line in _EPOCH.finditer(data)]
        events.sort(key=lambda event: event[0])
        self.events += [event for _, event in events if event is not None]
        self.profiled |= {int(epoch) for epoch in _PROFILED.findall(data)}
        for tasks in _TASKS.findall(data):
            values = [number(task) for task in tasks.split(b",")]
            self.non_finite += sum(v is not None and not math.isfinite(v) for v in values)
        peaks = [float(value) for value in set(_MEMORY.findall(data))]
        if peaks:
            self.reserved_gb = max(*peaks, self.reserved_gb or 0.0)
        self._precision(data)

    def _epoch(self, data: bytes, line: re.Match[bytes]) -> BarEvent:
        rank, epoch = rank_before(data, line.start()) or 0, int(line[1])
        train, *others = (number(line[group]) for group in (2, 3, 4))
        if train is not None:
            self.losses.append((rank, epoch, train))
        losses = (loss for loss in (train, *others) if loss is not None)
        self.non_finite += sum(not math.isfinite(loss) for loss in losses)
        return BarEvent("epoch", epoch=epoch, rank=rank)

    def _precision(self, data: bytes) -> None:
        if _FALLBACK in data:
            self.dtype = "float32"
        elif self.dtype is None and _DIAGNOSTIC in data:
            requested, parameters = _REQUESTED.search(data), _PARAMETERS.search(data)
            if requested:
                self.dtype = _DTYPES.get(requested[1])
            elif parameters:
                self.dtype = parameters[1].decode("ascii", "replace")

    @property
    def found(self) -> bool:
        """True once a bar or an epoch line was read."""
        return bool(self.events)

    def finish(self, log: Log) -> None:
        """Add bars and losses of the lowest rank, memory and precision of all."""
        lowest = min((e.rank for e in self.events if e.kind == "epoch"), default=0)
        log.bars += [e for e in self.events if e.kind != "epoch" or e.rank == lowest]
        log.epoch_losses.update({e: loss for rank, e, loss in self.losses if rank == lowest})
        log.non_finite += self.non_finite
        log.profiled_epochs |= self.profiled
        log.dtype = self.dtype or log.dtype
        if self.reserved_gb is not None:
            log.add_reserved(self.reserved_gb * GB)


def _bar_event(bar: re.Match[bytes]) -> BarEvent | None:
    """Start or end of an epoch's bar; None between (1 of 400 prints as 0 %) and without a rate."""
    done, total = int(bar[1]), int(bar[2])
    if done == 0:
        return BarEvent("start", batches=total)
    rate = _RATE.search(bar[3])
    if done != total or rate is None:
        return None
    pace = float(rate[1])
    if pace <= 0:
        return None
    seconds = {b"it/s": 1 / pace, b"s/it": pace, b"ms/it": pace / 1000}[rate[2]]
    return BarEvent("end", batches=total, seconds=seconds * total)


FORMAT = HydraGnn
