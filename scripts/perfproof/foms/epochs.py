"""One record an epoch from progress bars, however many ranks wrote bars to the log."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from perfproof.foms.log import BarEvent


@dataclass(frozen=True)
class EpochRecord:
    """One epoch as its progress bar closed it."""

    epoch: int
    batches: int
    seconds: float


def epoch_records(
    events: list[BarEvent], ranks: int | None, epochs: int | None
) -> list[EpochRecord]:
    """Epochs in order. `ranks` of the run and its number of `epochs` help where they are known.

    Bars name no rank, and with a verbose logger each rank draws one. So bars are first cut into
    epochs, and of an epoch the last bar at 100 % counts: that is the average at close (the update
    before it holds a smoothed rate), and ranks of a synchronous job differ by less than a step.
    """
    if any(event.kind == "epoch" for event in events):
        return _last_ends(_cut_at_epoch_lines(events))
    if any(event.kind == "start" for event in events):
        return _last_ends(_cut_at_starts(events, _bars_at_once(events, ranks, epochs)))
    ends = [event for event in events if event.kind == "end"]
    width = _bars_an_epoch(len(ends), ranks, epochs)
    return _last_ends(enumerate(ends[at : at + width] for at in range(0, len(ends), width)))


def later_epochs(epochs: list[EpochRecord]) -> list[EpochRecord]:
    """Epochs that are not the first of an attempt: their number goes up."""
    pairs = itertools.pairwise(epochs)
    return [epoch for before, epoch in pairs if epoch.epoch > before.epoch]


def _last_ends(parts: Iterable[tuple[int, list[BarEvent]]]) -> list[EpochRecord]:
    records = []
    for epoch, part in parts:
        ends = [event for event in part if event.kind == "end"]
        if ends:
            records.append(EpochRecord(epoch, ends[-1].batches, ends[-1].seconds))
    return records


def _cut_at_epoch_lines(events: list[BarEvent]) -> list[tuple[int, list[BarEvent]]]:
    """The line that closes an epoch comes after validation, so after the bars of all ranks."""
    parts: list[tuple[int, list[BarEvent]]] = []
    open_part: list[BarEvent] = []
    for event in events:
        if event.kind == "epoch":
            parts.append((event.epoch, open_part))
            open_part = []
        else:
            open_part.append(event)
    return [*parts, (parts[-1][0] + 1, open_part)]


def _bars_at_once(events: list[BarEvent], ranks: int | None, epochs: int | None) -> int:
    """Bars that are drawn side by side: one, or one a rank.

    All ranks start a bar before one can end its first. But a single bar is drawn anew at 0 % when
    another line is printed, so several starts alone do not tell where the number of ranks is known.
    """
    first_end = next((at for at, e in enumerate(events) if e.kind == "end"), len(events))
    at_once = sum(event.kind == "start" for event in events[:first_end])
    if ranks is None:
        return max(1, at_once)
    starts = sum(event.kind == "start" for event in events)
    return ranks if at_once >= ranks and starts >= ranks * (epochs or 1) else 1


def _cut_at_starts(events: list[BarEvent], width: int) -> list[tuple[int, list[BarEvent]]]:
    """Every `width` starts begin an epoch; of a single bar only those after an end.

    A slow rank may end its bar after a fast one has started the next. Its late end then comes
    first in the next epoch's part and is not the last one there.
    """
    parts: list[tuple[int, list[BarEvent]]] = [(0, [])]
    starts, ended = 0, False
    for event in events:
        if event.kind == "start":
            if ended if width == 1 else starts and starts % width == 0:
                parts.append((len(parts), []))
            starts, ended = starts + 1, False
        ended = ended or event.kind == "end"
        parts[-1][1].append(event)
    return parts


def _bars_an_epoch(bars: int, ranks: int | None, epochs: int | None) -> int:
    """Bars that one epoch closed, where a filter left only bars at 100 % in the log."""
    if epochs and bars % epochs == 0 and bars:
        return bars // epochs
    if ranks and bars % ranks == 0:
        return ranks
    return 1
