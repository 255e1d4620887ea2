"""HydraGNN's bars and lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.foms.epochs import epoch_records
from tests.foms.logs import end_bar, epoch_line, parse, start_bar

MEMORY = "0: Max memory allocated after optimizer step: 3.258697728 GB 3.875536896 GB\n"


def bar(done: int, total: int, rate: str) -> str:
    percent = round(100 * done / total)
    return f"\rTrain: {percent:3d}%|{'█' * 4}▏     | {done}/{total} [00:01<00:01, {rate}]"


def test_several_updates_and_other_lines_share_a_physical_line(tmp_path: Path) -> None:
    text = start_bar(24) + "[precision-diagnostic] first_batch_float_dtype=torch.float32\n"
    text += bar(10, 24, "7.69it/s") + MEMORY + bar(11, 24, "1.16s/it") + bar(12, 24, "3.0it/s")
    text += end_bar(24, "11.27it/s", newline=False) + end_bar(24, "10.00it/s")
    text += "\rValidate: 100%|████| 2/2 [00:00<00:00, 26.12it/s]\n" + epoch_line(0, 4.96697521)
    log = parse(tmp_path, text)
    assert [event.kind for event in log.bars] == ["start", "end", "end", "epoch"]
    (record,) = epoch_records(log.bars, None, None)
    assert (record.epoch, record.batches) == (0, 24)
    assert record.seconds == pytest.approx(2.4)
    assert log.epoch_losses == {0: 4.96697521}
    assert log.reserved_bytes == 3_875_536_896


def test_one_of_many_is_no_start_and_almost_all_no_end(tmp_path: Path) -> None:
    log = parse(tmp_path, start_bar(400) + bar(1, 400, "2.0it/s") + bar(399, 400, "2.0it/s") + "\n")
    assert [event.kind for event in log.bars] == ["start"]


def test_job_timers_are_no_event(tmp_path: Path) -> None:
    timers = "0: Process 0 - Local timer:  train_validate_test  :  8.69\n0: Minimum timers: \n"
    log = parse(tmp_path, start_bar(4) + end_bar(4, "2.00s/it") + timers)
    assert [event.seconds for event in log.bars] == [0, 8]


def test_losses_of_other_ranks_are_not_the_curve(tmp_path: Path) -> None:
    text = epoch_line(0, 5.0, rank=1) + epoch_line(0, 4.0, rank=0) + epoch_line(0, 6.0, rank=11)
    log = parse(tmp_path, text)
    assert log.epoch_losses == {0: 4.0}
    assert [event.kind for event in log.bars] == ["epoch"]


def test_non_finite_losses_of_tasks_count(tmp_path: Path) -> None:
    text = epoch_line(0, "nan") + "0: Tasks Train Loss: [nan, 0.04, inf]\n"
    text += "0: Tasks Val Loss: [nan]\n"
    assert parse(tmp_path, text).non_finite == 3


def test_profiled_epoch(tmp_path: Path) -> None:
    text = start_bar(4) + "Total number of profiled events: 71925 at epoch 1\n"
    assert parse(tmp_path, text).profiled_epochs == {1}


@pytest.mark.parametrize(
    ("line", "dtype"),
    [
        ("[precision-diagnostic] requested=fp64 model_param_dtype=torch.float64\n", "float64"),
        ("[precision-diagnostic] requested=bf16 model_param_dtype=torch.float32\n", "bfloat16"),
        ("[precision-diagnostic] model_param_dtype=torch.float32 first=torch.float32\n", "float32"),
        (
            "[precision-diagnostic] requested=bf16 model_param_dtype=torch.float32\n"
            "Requested bf16 but unsupported on cpu; falling back to full precision.\n",
            "float32",
        ),
    ],
)
def test_precision_as_it_took_effect(tmp_path: Path, line: str, dtype: str) -> None:
    assert parse(tmp_path, line + start_bar(4) + "\n").dtype == dtype


rates = st.one_of(
    st.integers(1, 10**5).map(lambda n: (f"{n / 100:.2f}s/it", n / 100)),
    st.integers(1, 10**5).map(lambda n: (f"{n / 100:.2f}it/s", 100 / n)),
)


@settings(deadline=None, max_examples=50)
@given(st.lists(rates, min_size=1, max_size=6), st.integers(1, 5), st.booleans())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    epochs: list[tuple[str, float]],
    ranks: int,
    closed: bool,
) -> None:
    text = ""
    for number, (rate, _) in enumerate(epochs):
        text += start_bar(20) * ranks + bar(7, 20, "9.99it/s") * ranks
        text += (end_bar(20, "9.99s/it", newline=False) + end_bar(20, rate)) * ranks
        text += epoch_line(number, 1.0) if closed else ""
    log = parse(tmp_path_factory.mktemp("bars"), text)
    records = epoch_records(log.bars, None, None)
    assert [record.epoch for record in records] == list(range(len(epochs)))
    assert [r.seconds for r in records] == pytest.approx([20 * pace for _, pace in epochs])
