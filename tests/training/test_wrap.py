from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PRINT = (
    "import os, sys; print(os.environ['MPI'], os.environ['RANK'], os.getcwd());"
    "print('to error', file=sys.stderr); os._exit(7)"
)


def test_output_goes_to_the_ranks_log_and_the_exit_code_passes_through(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    words = ["--run-dir", str(tmp_path), "--rank-env", "MPI=r{rank}of{world_size}"]
    words += ["--cwd", str(place), "--exec", sys.executable, "-c", PRINT]
    env = os.environ | {"SLURM_PROCID": "2", "SLURM_LOCALID": "0", "SLURM_NTASKS": "4"}
    env.pop("RANK", None)
    done = subprocess.run(
        [sys.executable, "-m", "perfproof.training.wrap", *words], env=env, capture_output=True
    )
    assert done.returncode == 7
    assert done.stdout == b""
    assert done.stderr.startswith(b"rank 2 of 4, local rank 0 on ")
    # `os._exit` flushes nothing: the lines are there because output is not buffered.
    assert (tmp_path / "log_rank2.txt").read_text().splitlines() == [
        f"r2of4 2 {place.resolve()}",
        "to error",
    ]


def wrap(tmp_path: Path, ranks: int, **env: str) -> subprocess.CompletedProcess[str]:
    words = ["--run-dir", str(tmp_path), "--ranks", str(ranks), "--exec", "true"]
    return subprocess.run(
        [sys.executable, "-m", "perfproof.training.wrap", *words],
        env={name: value for name, value in os.environ.items() if name != "RANK"} | env,
        capture_output=True,
        text=True,
    )


def test_a_rank_says_who_it_is(tmp_path: Path) -> None:
    done = wrap(tmp_path, 4, SLURM_PROCID="2", SLURM_LOCALID="1", SLURM_NTASKS="4")
    assert done.returncode == 0
    assert done.stderr.startswith("rank 2 of 4, local rank 1 on ")


def test_a_rank_that_thinks_it_is_alone_stops_before_it_trains(tmp_path: Path) -> None:
    done = wrap(tmp_path, 4, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
    assert done.returncode == 1
    assert "rank 0 believes that it is one of 1; expected 4 ranks" in done.stderr
    assert not list(tmp_path.iterdir())
