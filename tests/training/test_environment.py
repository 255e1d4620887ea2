from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.core.files import write_record
from perfproof.schema.run import State
from perfproof.training.environment import difference, inherited, record
from tests.cluster.runs import manifest

SHELL = {
    "PATH": "/bin",
    "NCCL_IB_HCA": "mlx5",
    "HSA_XNACK": "1",
    "MKL_NUM_THREADS": "4",
    "OMP_NUM_THREADS": "2",
    "ROCR_VISIBLE_DEVICES": "0,1",
    "GITHUB_TOKEN": "abc",
    "DB_PASSWORD": "abc",
    "AWS_ACCESS_KEY_ID": "abc",
    "MODULES": "rocm/6",
    "SHLVL": "2",
}


def test_levers_of_the_shell_do_not_reach_the_ranks_and_devices_do() -> None:
    assert set(SHELL) - inherited(SHELL).keys() == {
        "NCCL_IB_HCA",
        "HSA_XNACK",
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
    }


def test_the_record_says_who_set_what() -> None:
    found = record(SHELL, {"OMP_NUM_THREADS": "7"})
    assert found.given == {"OMP_NUM_THREADS": "7"}
    assert found.cleared == {"HSA_XNACK": "1", "MKL_NUM_THREADS": "4", "NCCL_IB_HCA": "mlx5"}
    assert found.leaked.keys() == {
        *("PATH", "ROCR_VISIBLE_DEVICES", "MODULES"),
        *("GITHUB_TOKEN", "DB_PASSWORD", "AWS_ACCESS_KEY_ID"),
    }


def test_no_value_is_recorded_and_of_secrets_no_digest_either() -> None:
    found = record(SHELL, {})
    assert {found.leaked[n] for n in ("GITHUB_TOKEN", "DB_PASSWORD", "AWS_ACCESS_KEY_ID")} == {""}
    assert "rocm/6" not in found.model_dump_json()
    assert len(found.leaked["MODULES"]) == 12


def test_two_runs_are_compared_by_who_set_a_variable() -> None:
    other = SHELL | {"MODULES": "rocm/7", "NCCL_IB_HCA": "mlx6"}
    assert difference(record(SHELL, {"A": "1"}), record(other, {"A": "2"})) == {
        "given": ["A"],
        "cleared": ["NCCL_IB_HCA"],
        "leaked": ["MODULES"],
    }


def compared(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfproof.training.environment", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    """Two runs: one variable of the recipe differs, one leaked into both and one into one."""
    other = {k: v for k, v in SHELL.items() if k != "PATH"} | {"MODULES": "rocm/7"}
    folders = []
    for name, shell, given in [("a", SHELL, {"A": "1"}), ("b", other, {"A": "2"})]:
        folders.append(str(tmp_path / name))
        found = manifest(State.COMPLETED, 0).model_copy(
            update={"environment": record(shell, given)}
        )
        write_record(tmp_path / name / "manifest.json", found)
    return folders


def test_the_command_shows_what_differs(pair: list[str]) -> None:
    done = compared(*pair)
    first, second = (record(SHELL | {"MODULES": v}, {}).leaked for v in ("rocm/6", "rocm/7"))
    assert done.stdout.splitlines() == [
        "given  A: '1' | '2'",
        f"leaked  MODULES: value {first['MODULES']} | value {second['MODULES']}",
        f"leaked  PATH: value {first['PATH']} | absent",
        "STATUS=ok; reason=3 variables differ",
    ]
    same = compared(pair[0], f"{pair[0]}/manifest.json")
    assert same.stdout == "STATUS=ok; reason=0 variables differ\n"


def test_a_directory_without_a_run_is_named(pair: list[str], tmp_path: Path) -> None:
    done = compared(pair[0], str(tmp_path))
    assert done.returncode == 1
    assert f"reason={tmp_path}: no manifest" in done.stdout
