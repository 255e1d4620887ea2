"""The older ORBIT-2 lines."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.schema.base import Reason
from perfproof.schema.foms import Method, StepTimeSource
from tests.foms.logs import foms, layout, orbit2_config, parse

BATCH = StepTimeSource.BATCH_SECONDS


def epoch(number: int, times: dict[int, float], loss: object) -> str:
    batches = "".join(f"Batch {index}: {seconds:.4f} seconds\n" for index, seconds in times.items())
    return f"Starting epoch {number}\n{batches}Epoch {number} completed. Loss: {loss}\n"


def test_every_tenth_batch_is_timed_and_the_nominal_batch_counts(tmp_path: Path) -> None:
    text = layout() + "".join(epoch(n, {0: 9.0, 10: 0.5 + n}, 1.0 / (n + 1)) for n in range(3))
    found = foms(tmp_path, {"log_rank0.txt": text, "config.yaml": orbit2_config(4)})
    assert found.steady_step_times_s == [1.5, 2.5]
    assert found.integrity.step_time_source is BATCH
    assert found.throughput_method is Method.NOMINAL_BATCH
    assert found.throughput_samples_per_s == pytest.approx(4 * 8 * 2 / 4.0)
    assert found.integrity.reasons["batches_per_epoch"] is Reason.NOT_PRINTED
    assert [point.loss for point in found.loss_curve] == pytest.approx([1, 1 / 2, 1 / 3])


def test_lines_that_all_ranks_repeat_count_once(tmp_path: Path) -> None:
    lines = epoch(0, {0: 1.0, 10: 2.0}, "nan").splitlines(keepends=True)
    log = parse(tmp_path, "".join(line * 8 for line in lines))
    assert log.tables[BATCH].steps().time_s.tolist() == [1.0, 2.0]
    assert log.non_finite == 1
    assert math.isnan(log.epoch_losses[0])


def test_lines_must_start_with_the_words(tmp_path: Path) -> None:
    log = parse(tmp_path, epoch(0, {0: 1.0}, 0.5) + "Validation Batch 10: 3.0 seconds\n")
    assert len(log.tables[BATCH]) == 1


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(1, 10**6), min_size=1, max_size=5), min_size=1, max_size=5))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[list[int]]
) -> None:
    made = [{10 * at: n / 10**4 for at, n in enumerate(times)} for times in epochs]
    text = "".join(epoch(number, times, 0.5) for number, times in enumerate(made))
    steps = parse(tmp_path_factory.mktemp("old"), text).tables[BATCH].steps()
    assert steps.time_s.tolist() == pytest.approx([s for times in made for s in times.values()])
    assert steps.epoch.tolist() == [n for n, times in enumerate(made) for _ in times]
