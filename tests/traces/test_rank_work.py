from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfproof.core.files import read_record
from perfproof.schema.base import Problem
from perfproof.schema.run import Inventory, Role
from perfproof.traces import rank_work
from perfproof.traces.rank_work import all_ranks
from tests.traces.make import write_inventory
from tests.traces.test_tables import rank_trace


class Deadly:
    """A root directory: whoever opens `rank1.json` in it is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> Path:
        if name == "rank1.json":
            os._exit(9)
        return self.folder / name


@pytest.fixture(autouse=True)
def _small_traces_are_worth_a_process(monkeypatch):
    monkeypatch.setattr(rank_work, "BYTES_A_PROCESS", 1)


def artifacts(folder, count):
    names = [f"rank{number}.json" for number in range(count)]
    for number, name in enumerate(names):
        rank_trace(number, count).write(folder / name)
    return read_record(write_inventory(folder, names), Inventory).of(Role.TRACE)


def test_in_order_whatever_the_number_of_processes(tmp_path):
    listed = artifacts(tmp_path, 4)
    serial = list(all_ranks(listed, tmp_path, 1))
    assert [work.record.rank for work in serial] == [0, 1, 2, 3]
    parallel = list(all_ranks(listed, tmp_path, 3))
    assert [(w.record, w.texts, w.numbers) for w in parallel] == [
        (w.record, w.texts, w.numbers) for w in serial
    ]


def test_a_killed_process_costs_only_its_rank(tmp_path):
    found = list(all_ranks(artifacts(tmp_path, 3), Deadly(tmp_path), 2))
    what = "not analysed: the process was killed (out of memory?)"
    assert found[1] == Problem(where="rank1.json", what=what)
    assert [found[at].record.rank for at in (0, 2)] == [0, 2]
    assert list(all_ranks([], tmp_path, 2)) == []


def test_small_traces_are_not_worth_a_process(tmp_path, monkeypatch):
    monkeypatch.setattr(rank_work, "BYTES_A_PROCESS", 2_500_000)
    monkeypatch.setattr(rank_work, "ProcessPoolExecutor", None)
    assert len(list(all_ranks(artifacts(tmp_path, 2), tmp_path, 2))) == 2
