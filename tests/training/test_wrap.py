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
    assert done.stdout == done.stderr == b""
    # `os._exit` flushes nothing: the lines are there because output is not buffered.
    assert (tmp_path / "log_rank2.txt").read_text().splitlines() == [
        f"r2of4 2 {place.resolve()}",
        "to error",
    ]
