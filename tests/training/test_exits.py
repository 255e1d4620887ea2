from __future__ import annotations

import pytest

from perfproof.training.exits import first_exit_code


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (
            "srun: error: a2: task 1: Exited with exit code 134\n"
            "srun: error: a1: task 0: Terminated",
            134,
        ),
        ("srun: error: a1: tasks 0-3: Killed\n", 137),
        ("srun: error: a1: task 0: Segmentation fault (core dumped)\n", 139),
        ("srun: error: a1: task 0: Out Of Memory\n", 137),
        (
            "rank 0 of 2, local rank 0 on a1\nsrun: Job step aborted: Waiting up to 4 seconds\n",
            None,
        ),
        ("", None),
    ],
)
def test_the_first_tasks_end_counts(output: str, code: int | None) -> None:
    assert first_exit_code(output) == code
