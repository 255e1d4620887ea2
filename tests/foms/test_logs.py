"""Several logs of one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.schema.base import Reason
from perfproof.schema.foms import Method
from tests.foms.logs import (
    Step,
    edm_log,
    foms,
    layout,
    orbit2_config,
    start_bar,
    step_record,
)


def records(rank: int, size: int) -> str:
    rows = [(epoch, i) for epoch in range(2) for i in range(3)]
    return "".join(step_record(epoch=e, i=i, dt=1 + rank, samples=size, rank=rank) for e, i in rows)


def test_batches_of_all_ranks_count_times_of_rank_zero(tmp_path: Path) -> None:
    files = {
        "log_rank0.txt": records(0, 8),
        "log_rank1.txt": records(1, 6),
        "meta.json": '{"ranks": 2}',
    }
    found = foms(tmp_path, files)
    assert found.steady_step_times_s == [1, 1]
    assert found.throughput_samples_per_s == pytest.approx(14)
    assert found.integrity.realised_batches_per_rank == [6, 8]
    assert found.samples_per_epoch == 3 * 14


def test_ranks_that_did_not_report_are_taken_to_be_like_those_that_did(tmp_path: Path) -> None:
    found = foms(tmp_path, {"log_rank0.txt": records(0, 8), "meta.json": '{"ranks": 4}'})
    assert found.throughput_samples_per_s == pytest.approx(32)


def test_memory_and_losses_of_every_rank(tmp_path: Path) -> None:
    other = "rank 1 torch.cuda.memory_reserved: 9.0GB\n" + step_record(i=0, dt=1, loss="nan")
    text = edm_log([[Step(1.0, 8)] * 4]) + "rank 0 torch.cuda.memory_reserved: 2.0GB\n"
    found = foms(tmp_path, {"log_rank0.txt": text, "log_rank1.txt": other})
    assert found.hbm_reserved_bytes == 9 * 2**30
    assert found.non_finite_count == 1


def test_a_merged_log_is_not_added_to_the_ranks_own(tmp_path: Path) -> None:
    text = edm_log([[Step(1.0, 8, "nan")] * 4])
    found = foms(tmp_path, {"log_rank0.txt": text, "train.log": text})
    assert found.non_finite_count == 4
    assert len(found.steady_step_times_s) == 1


def test_a_log_with_times_is_preferred_to_one_without(tmp_path: Path) -> None:
    files = {
        "log_rank0.txt": "Epoch 0 completed. Loss: 5.0\n",
        "train.log": edm_log([[Step(1.0, 8)] * 5]),
    }
    assert foms(tmp_path, files).integrity.steady_steps == 2


@pytest.mark.parametrize(("recorded", "step_time"), [(4, 2.0), (3, 1.0)])
def test_records_of_every_step_give_the_times(
    tmp_path: Path, recorded: int, step_time: float
) -> None:
    """They hold the wait for the batch, the model's own lines do not; some steps are no account."""
    own = edm_log([[Step(1.0)] * 4] * 2)
    text = own + "".join(
        step_record(epoch=e, i=i, dt=2.0, y="8x3x4x4", profiled=int(e == 1))
        for e in range(2)
        for i in range(recorded)
    )
    found = foms(tmp_path, {"log_rank0.txt": text, "config.yaml": orbit2_config(8)})
    assert set(found.steady_step_times_s) == {step_time}


def test_records_fill_in_what_the_models_own_lines_lack(tmp_path: Path) -> None:
    """And the other way round: flags of one account, batches of the other."""
    own = edm_log([[Step(1.0, 8)] * 4] * 2)
    text = own + "".join(
        step_record(epoch=e, i=i, dt=2.0, profiled=int(e == 1)) for e in range(2) for i in range(4)
    )
    found = foms(tmp_path, {"log_rank0.txt": text, "config.yaml": orbit2_config(8)})
    assert found.throughput_method is Method.REALISED_BATCH
    assert found.integrity.profiled_steps_excluded == 4


def test_only_a_header(tmp_path: Path) -> None:
    found = foms(tmp_path, {"log_rank0.txt": layout() + "Traceback (most recent call last):\n"})
    assert found.reasons["throughput_samples_per_s"] is Reason.NO_STEP_LINES
    assert found.integrity.ranks == 8
    assert found.integrity.log_format is None


def test_a_bar_that_never_ended(tmp_path: Path) -> None:
    found = foms(tmp_path, {"log_rank0.txt": start_bar(10) + "\nRuntimeError: backward\n"})
    assert found.reasons["step_time_s"] is Reason.NO_STEP_LINES
    assert found.reasons["epoch_time_s"] is Reason.NO_EPOCH_LINES
