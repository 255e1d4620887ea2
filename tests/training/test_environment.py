from __future__ import annotations

from perfproof.training.environment import difference, inherited, record

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
