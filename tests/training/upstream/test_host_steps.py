"""Step records: boundaries, samples, losses, and what observers are told."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from perfproof.foms.formats.step_records import StepRecords
from perfproof.foms.log import Log
from perfproof.schema.foms import StepTimeSource
from perfproof.training.upstream.host.steps import CountedLoader, HostClock, Recorder


class Seconds(HostClock):
    """A clock that moves on by one second each time it is read."""

    def __init__(self) -> None:
        self._times = itertools.count()

    def mark(self) -> Any:
        return next(self._times)


class Noted:
    """An observer that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begins(self, profiled: bool) -> None:
        self.told.append(f"begins {profiled}")

    def step(self) -> None:
        self.told.append("step")

    def ends(self) -> None:
        self.told.append("ends")


class Batches:
    """A loader of batches of 3, 3 and 1 samples."""

    num_workers = 5

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[1, 2, 3], [4, 5, 6], [7]])


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def recorder(lines: list[str]) -> Recorder:
    return Recorder(4, Seconds, lines.append)


def counted(recorder: Recorder, profiled: bool = False, limit: int | None = None) -> CountedLoader:
    return CountedLoader(Batches(), recorder, len, profiled, limit)


def fields(line: str) -> dict[str, str]:
    return dict(word.split("=") for word in line.split()[2:])


def test_every_step_is_recorded_when_the_epoch_ends(recorder: Recorder, lines: list[str]) -> None:
    for batch in counted(recorder):
        assert lines == []
        recorder.lost(torch.tensor(float(len(batch))))
    records = [fields(line) for line in lines]
    assert [record["samples"] for record in records] == ["3", "3", "1"]
    assert [record["loss"] for record in records] == ["3.0", "3.0", "1.0"]
    assert {record["dt"] for record in records} == {"1.000000"}
    assert {(r["epoch"], r["profiled"], r["rank"]) for r in records} == {("0", "0", "4")}
    times = [float(record["t"]) for record in records]
    assert [round(later - times[0]) for later in times] == [0, 1, 2]


def test_a_batch_that_the_trainer_asked_for_and_dropped_is_no_step(
    recorder: Recorder, lines: list[str]
) -> None:
    for index, _ in enumerate(counted(recorder)):
        if index == 2:
            break
    recorder.epoch_ends()
    assert [fields(line)["i"] for line in lines] == ["0", "1"]


def test_a_limit_ends_the_epoch(recorder: Recorder, lines: list[str]) -> None:
    assert len(list(counted(recorder, limit=2))) == 2
    assert len(lines) == 2
    assert recorder.epochs == 1


def test_a_loss_belongs_to_its_step_and_may_be_missing_or_not_finite(
    recorder: Recorder, lines: list[str]
) -> None:
    losses = [None, float("nan"), None]
    for _, loss in zip(counted(recorder), losses, strict=True):
        if loss is not None:
            recorder.lost(torch.tensor(loss))
    assert [fields(line)["loss"] for line in lines] == ["none", "nan", "none"]


def test_observers_hear_of_epochs_and_steps(recorder: Recorder) -> None:
    noted = Noted()
    recorder.observers.append(noted)
    list(counted(recorder, limit=1))
    list(counted(recorder, profiled=True, limit=2))
    assert noted.told == ["begins False", "step", "ends", "begins True", "step", "step", "ends"]


def test_training_begins_with_the_first_epoch(recorder: Recorder) -> None:
    assert not recorder.training
    loader = iter(counted(recorder))
    next(loader)
    assert recorder.training


def test_the_trainers_loader_shows_through(recorder: Recorder) -> None:
    loader = counted(recorder)
    assert len(loader) == 3
    assert loader.num_workers == 5
    with pytest.raises(AttributeError):
        loader.no_such_thing  # noqa: B018


def test_records_are_read_by_the_foms_stage(recorder: Recorder, lines: list[str]) -> None:
    for _ in counted(recorder, profiled=True):
        recorder.lost(2.5)
    reader, log = StepRecords(), Log()
    reader.feed("\n".join(lines).encode() + b"\n")
    reader.finish(log)
    steps = log.tables[StepTimeSource.STEP_RECORD].steps()
    assert steps.size.tolist() == [3, 3, 1]
    assert steps.loss.tolist() == [2.5] * 3
    assert steps.time_s.tolist() == [1.0] * 3
    assert steps.profiled.all()
