"""A run that was started anew in the same log: attempts are not added up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.foms.logs import (
    RANKS,
    Step,
    edm_epoch,
    edm_log,
    end_bar,
    epoch_line,
    foms,
    hydragnn_config,
    layout,
    start_bar,
)

FAST, SLOW = Step(1.0, 8), Step(9.0, 8)


def log(*epochs: tuple[int, list[Step]]) -> str:
    return layout() + "".join(edm_epoch(number, steps) for number, steps in epochs)


def test_a_resumed_epoch_is_warm_up_again_and_counted_once(tmp_path: Path) -> None:
    text = log((0, [SLOW] * 6), (1, [FAST] * 4), (1, [SLOW] * 6), (2, [FAST] * 6))
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert found.steady_step_times_s == [1.0] * 3 + [1.0] * 5
    assert found.integrity.batches_per_epoch == 6
    assert found.samples_per_epoch == 6 * 8 * RANKS
    assert [(p.where, p.what) for p in found.problems] == [
        ("log_rank0.txt", "epoch 1 was started twice; expected one run in a log")
    ]


def test_the_loss_of_an_epoch_is_that_of_its_last_attempt(tmp_path: Path) -> None:
    text = log(*((number, [Step(1.0, 8, loss)] * 3) for number, loss in ((0, 4), (1, 9), (1, 2))))
    curve = foms(tmp_path, {"log_rank0.txt": text}).loss_curve
    assert [(point.epoch, point.loss) for point in curve] == [(0, 4), (1, 2)]


def test_two_whole_runs_in_one_log(tmp_path: Path) -> None:
    whole = edm_log([[SLOW] * 5, [FAST] * 5])
    found = foms(tmp_path, {"log_rank0.txt": whole * 2})
    assert found.steady_step_times_s == [1.0] * 8
    assert found.integrity.batches_per_epoch == 5
    assert found.problems[0].what == "epochs 0, 1 were started twice; expected one run in a log"


def test_runs_of_a_single_epoch_warm_up_each(tmp_path: Path) -> None:
    once = edm_log([[SLOW] * 3 + [FAST] * 3])
    found = foms(tmp_path, {"log_rank0.txt": once * 3})
    assert found.steady_step_times_s == [1.0] * 9
    assert found.problems[0].what.startswith("epoch 0 was started up to 3 times")


def test_epochs_that_go_back_without_a_repetition(tmp_path: Path) -> None:
    found = foms(
        tmp_path, {"log_rank0.txt": log((5, [FAST] * 4), (2, [SLOW] * 4), (3, [FAST] * 4))}
    )
    assert found.steady_step_times_s == [1.0] * 3
    assert found.problems[0].what == "epochs go back to 2; expected one run in a log"


def test_bars_of_two_runs_in_one_log(tmp_path: Path) -> None:
    rates = ("9.00s/it", "1.50s/it", "1.50s/it")
    once = "".join(
        start_bar(50) + end_bar(50, rate) + epoch_line(number, 5.0)
        for number, rate in enumerate(rates)
    )
    files = {"config.json": hydragnn_config(4), "meta.json": '{"ranks": 2}'}
    found = foms(tmp_path, {"log_rank0.txt": once * 2, **files})
    assert found.epoch_time_s == pytest.approx(75)
    assert found.problems[0].what == "epochs 0, 1, 2 were started twice; expected one run in a log"


def test_a_line_printed_twice_is_no_second_attempt(tmp_path: Path) -> None:
    once = "".join(start_bar(9) + end_bar(9, "1.00s/it") + epoch_line(e, 5.0) * 2 for e in range(3))
    files = {"config.json": hydragnn_config(4), "meta.json": '{"ranks": 2}'}
    found = foms(tmp_path, {"log_rank0.txt": once, **files})
    assert found.problems == []
    assert found.epoch_time_s == pytest.approx(9)
