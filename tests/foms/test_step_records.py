"""Step records of instrumented runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.foms.log import Log
from perfproof.foms.step_table import NO_LOSS, Steps
from perfproof.schema.foms import StepTimeSource
from tests.foms.logs import parse, step_record


def steps_of(log: Log) -> Steps:
    return log.tables[StepTimeSource.STEP_RECORD].steps()


@pytest.mark.parametrize("size", [{"samples": 8}, {"graphs": 8}, {"y": "8x3x384x768"}])
def test_a_batch_by_any_name(tmp_path: Path, size: dict[str, object]) -> None:
    steps = steps_of(parse(tmp_path, step_record(i=0, dt=0.25, loss=1.5, x="9x7x1x1", **size)))
    assert (steps.size.tolist(), steps.time_s.tolist(), steps.loss.tolist()) == ([8], [0.25], [1.5])


def test_a_time_that_is_not_known_is_not_a_loss(tmp_path: Path) -> None:
    log = parse(tmp_path, step_record(i=0, dt="nan", graphs=8) + step_record(i=1, dt=1, loss="nan"))
    assert log.non_finite == 1
    assert steps_of(log).loss_state.tolist()[0] == NO_LOSS
    assert steps_of(log).time_s.tolist()[1] == 1


def test_ranks_and_profiled_steps(tmp_path: Path) -> None:
    text = step_record(epoch=0, i=0, dt=2, samples=3, rank=1, profiled=0)
    text += step_record(epoch=0, i=0, dt=1, samples=4, rank=0, profiled=1)
    text += step_record(epoch=1, i=0, dt=3, samples=4, rank=0, profiled=0, loss="none")
    steps = steps_of(parse(tmp_path, text))
    assert steps.time_s.tolist() == [1, 3]
    assert steps.profiled.tolist() == [True, False]
    assert steps.mixed == {0: [3, 4]}


def test_records_that_share_a_line_and_records_without_a_time(tmp_path: Path) -> None:
    text = step_record(i=0, dt=1).strip() + step_record(i=1, dt=2) + step_record(i=2)
    assert steps_of(parse(tmp_path, text)).time_s.tolist() == [1, 2]


def test_memory_peak_in_decimal_gigabytes(tmp_path: Path) -> None:
    text = "[lab] peak_alloc_gb=5.892 peak_reserved_gb=8.126\n"
    text += "[lab] memory peak_reserved_gb=7.5 rank=1\n"
    assert parse(tmp_path, text).reserved_bytes == 8_126_000_000


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(1e-6, 1e3), st.integers(1, 10**6), st.floats()),
        min_size=1,
        max_size=20,
    )
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, float, int, float]]
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    text = "".join(
        step_record(epoch=epoch, i=i, t=i, dt=repr(dt), samples=size, loss=repr(loss), rank=0)
        for i, (epoch, dt, size, loss) in enumerate(rows)
    )
    log = parse(tmp_path_factory.mktemp("records"), text)
    steps = steps_of(log)
    assert steps.epoch.tolist() == [row[0] for row in rows]
    assert steps.time_s.tolist() == [row[1] for row in rows]
    assert steps.size.tolist() == [row[2] for row in rows]
    assert steps.loss.tolist() == pytest.approx([row[3] for row in rows], nan_ok=True)
    assert log.non_finite == sum(abs(row[3]) == float("inf") or row[3] != row[3] for row in rows)
