"""One record an epoch, whoever drew bars."""

from __future__ import annotations

import pytest

from perfproof.foms.epochs import epoch_records
from perfproof.foms.log import BarEvent

START = BarEvent("start", batches=10)


def end(seconds: float) -> BarEvent:
    return BarEvent("end", batches=10, seconds=seconds)


def line(epoch: int) -> BarEvent:
    return BarEvent("epoch", epoch=epoch)


def seconds(
    events: list[BarEvent], ranks: int | None = None, epochs: int | None = None
) -> list[float]:
    return [record.seconds for record in epoch_records(events, ranks, epochs)]


def test_only_rank_zero_draws_bars_in_a_job_of_many() -> None:
    assert seconds([START, end(9), end(8), START, end(7)], ranks=16) == [8, 7]


def test_a_bar_that_is_drawn_anew_is_no_second_bar() -> None:
    events = [START, START, START, end(9), START, end(8), START, START, end(7)]
    assert seconds(events, ranks=1) == [9, 8, 7]
    assert seconds(events, ranks=16) == [9, 8, 7]
    assert seconds([START, START, end(9), START, end(8)], ranks=2, epochs=2) == [9, 8]


def test_a_slow_rank_ends_after_a_fast_one_has_started_the_next_epoch() -> None:
    events = [START, START, end(1), START, end(2), START, end(3), end(4)]
    assert seconds(events) == [1, 4]
    assert seconds(events, ranks=2, epochs=2) == [1, 4]


def test_epoch_lines_cut_what_starts_do_not() -> None:
    events = [START, START, end(1), end(1), line(3), START, START, end(2), end(2), line(4)]
    assert [(r.epoch, r.seconds) for r in epoch_records(events, None, None)] == [(3, 1), (4, 2)]


def test_an_epoch_after_the_last_closing_line_counts_if_it_ended() -> None:
    events = [START, end(1), line(0), START, end(2), START]
    assert [(r.epoch, r.seconds) for r in epoch_records(events, None, None)] == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("ranks", "epochs", "expected"),
    [(2, None, [2, 4]), (None, 2, [2, 4]), (16, 4, [1, 2, 3, 4]), (None, None, [1, 2, 3, 4])],
)
def test_only_ends_are_left(ranks: int | None, epochs: int | None, expected: list[float]) -> None:
    assert seconds([end(1), end(2), end(3), end(4)], ranks, epochs) == expected


def test_a_run_that_ended_within_its_first_epoch_has_none() -> None:
    assert seconds([START, START]) == []
    assert seconds([]) == []
