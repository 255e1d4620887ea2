"""ORBIT-2 and EDM step lines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.foms import blocks
from perfproof.foms.log import Log
from perfproof.foms.step_table import Steps
from perfproof.schema.foms import StepTimeSource
from tests.foms.logs import Step, edm_log, loss_line, parse, size_line, time_line

TIC = StepTimeSource.TIC4_TIC1


def steps_of(log: Log) -> Steps:
    return log.tables[TIC].steps()


def test_fields_of_a_step(tmp_path: Path) -> None:
    text = (
        size_line(4096)
        + "epoch:  2 batch_idx 1 world_rank 0  loss  tensor(0.8123, device='cuda:0')\n"
        + "rank 0 batch_idx 1 get_lr  [1e-07] after optimizer step\n"
        + "my rank 0. tic4-tic1 in 10.9321 seconds\n"
    )
    steps = steps_of(parse(tmp_path, text))
    assert (steps.epoch.tolist(), steps.index.tolist()) == ([2], [1])
    assert steps.time_s.tolist() == [10.9321]
    assert steps.loss.tolist() == [0.8123]
    assert (steps.size.tolist(), steps.reports.tolist()) == ([4096], [1])


def test_the_sum_over_an_epoch_is_no_step(tmp_path: Path) -> None:
    text = loss_line(0, 0, 0, 1.5) + time_line(1.0)
    text += "epoch:  0  epoch_loss  tensor(341.9329, device='cuda:0')\n"
    log = parse(tmp_path, text)
    assert len(steps_of(log)) == 1
    assert log.non_finite == 0


def test_times_of_other_ranks_are_not_counted(tmp_path: Path) -> None:
    text = loss_line(0, 0, 0, 1) + loss_line(0, 0, 1, 1) + time_line(9.0, rank=1) + time_line(1.0)
    assert steps_of(parse(tmp_path, text)).time_s.tolist() == [1.0]


def test_a_rank_that_is_ahead_does_not_take_the_time(tmp_path: Path) -> None:
    text = loss_line(0, 0, 0, 1) + loss_line(0, 0, 3, 1)
    for step in range(1, 4):
        text += loss_line(0, step, 3, 1) + time_line(float(step)) + loss_line(0, step, 0, 1)
    text += time_line(4.0)
    assert steps_of(parse(tmp_path, text)).time_s.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_ranks_that_lost_their_line_breaks(tmp_path: Path) -> None:
    text = loss_line(0, 0, 0, 1).strip() + loss_line(0, 0, 1, "nan").strip() + time_line(1.0)
    log = parse(tmp_path, "0 NpyReader: /data/1.npz" + text)
    assert steps_of(log).time_s.tolist() == [1.0]
    assert (log.non_finite, log.rank_lines) == (1, {0: 1, 1: 1})


def test_sizes_left_over_from_validation_are_not_the_next_steps(tmp_path: Path) -> None:
    step = size_line(8) + loss_line(0, 0, 0, 1) + time_line(1.0)
    text = step + size_line(3) * 5 + step.replace("batch_idx 0", "batch_idx 1")
    assert steps_of(parse(tmp_path, text)).size.tolist() == [8, 8]


def test_binary_garbage_between_lines(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(5000).replace(b"\n", b"x")
    lines = (loss_line(0, 0, 0, 1) + time_line(1.0)).encode()
    log = parse(tmp_path, noise + b"\n" + lines + noise + b"\n" + lines.replace(b"x 0", b"x 1"))
    assert steps_of(log).time_s.tolist() == [1.0, 1.0]


def test_a_value_that_was_cut_off_is_not_read(tmp_path: Path) -> None:
    text = (
        loss_line(0, 0, 0, 1)
        + time_line(1.0)
        + loss_line(0, 1, 0, 1)
        + "my rank 0. tic4-tic1 in 0.2"
    )
    log = parse(tmp_path, text)
    assert steps_of(log).time_s[0] == 1.0
    assert steps_of(log).time_s[1:].tolist() != [0.2]
    assert log.faults == [
        "ends in the middle of a line, which was not used; expected a line break at the end"
    ]


def test_a_rank_without_rank_zero_keeps_its_own_steps(tmp_path: Path) -> None:
    text = loss_line(0, 0, 5, 1) + time_line(2.0, rank=5)
    assert steps_of(parse(tmp_path, text)).time_s.tolist() == [2.0]


times = st.integers(1, 10**6).map(lambda n: n / 10**4)
losses = st.one_of(
    st.floats(1e-4, 1e4).map(lambda x: f"{x:.4f}"), st.sampled_from(["nan", "inf", "-inf"])
)
made = st.builds(Step, times, st.integers(1, 5000), losses)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(made, min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from([512, 1000, 1 << 20]),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[list[Step]], ranks: int, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block)
        log = parse(tmp_path_factory.mktemp("edm"), edm_log(epochs, ranks))
    steps, flat = steps_of(log), [step for epoch in epochs for step in epoch]
    assert steps.time_s.tolist() == pytest.approx([step.seconds for step in flat], abs=5e-5)
    assert steps.epoch.tolist() == [n for n, epoch in enumerate(epochs) for _ in epoch]
    assert steps.size.tolist() == [step.size for step in flat]
    assert steps.reports.tolist() == [ranks] * len(flat)
    assert not steps.mixed
    bad = sum(str(step.loss) in ("nan", "inf", "-inf") for step in flat)
    assert log.non_finite == bad * ranks
