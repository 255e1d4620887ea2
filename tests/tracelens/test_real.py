"""AMD's TraceLens itself, where an interpreter that has it is named, on recorded traces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfproof.tracelens.find import PYTHON_VARIABLE, choose, find_tracelens
from tests.tracelens.test_run import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PYTHON_VARIABLE not in os.environ,
        reason=f"{PYTHON_VARIABLE} names no interpreter with AMD's TraceLens",
    ),
]

AGREEMENTS = {
    "hta/a100_ddp_rank0of2_nccl_meta": "same",
    "tracelens/h100_bert-small": "same",
    "tracelens/mi300_resnet_act_checkpoint": "definition",
}


def test_it_is_amds() -> None:
    assert find_tracelens().version
    assert choose("auto").used == "tracelens"


@pytest.mark.parametrize(("name", "agreement"), AGREEMENTS.items())
def test_its_numbers_are_ours_or_differ_by_definition(
    tmp_path: Path, shared_data: Path, name: str, agreement: str
) -> None:
    (tmp_path / "run").mkdir()
    trace = shared_data / "traces" / f"{name}.json.gz"
    (tmp_path / "run" / "trace_rank0.json.gz").symlink_to(trace)
    line, record = run(tmp_path, timeout_s=300.0)
    assert line.startswith("STATUS=ok")
    assert record.ranks[0].agreement == agreement
    assert {"gpu_timeline", "ops_summary", "kernel_summary"} <= set(record.ranks[0].tables)


def test_what_it_cannot_read_is_said(tmp_path: Path, shared_data: Path) -> None:
    """The 2021 schema has no arrows; TraceLens finds no GPU event in it."""
    (tmp_path / "run").mkdir()
    name = "kineto/v100_resnet50_num_workers_0_old_schema.pt.trace.json.gz"
    (tmp_path / "run/trace_rank0.json.gz").symlink_to(shared_data / "traces" / name)
    line, record = run(tmp_path, "auto", timeout_s=300.0)
    assert line.startswith("STATUS=partial")
    assert "No GPU events found" in record.ranks[0].explanation
