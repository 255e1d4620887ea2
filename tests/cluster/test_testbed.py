"""The cluster that the tests use: it leaves nothing behind, also when it is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.cluster.testbed import Testbed, remove_abandoned

pytestmark = pytest.mark.cluster

_ABANDON = """
import os, signal
from tests.cluster.slurm_conf import Layout
from tests.cluster.testbed import Testbed
cluster = Testbed(Layout(nodes=("a1",)))
cluster.__enter__()
job = cluster.submit("sleep 300")
cluster.wait_state(job, "RUNNING")
print(cluster.root, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_cluster_of_a_killed_session_is_cleared(slurm: Testbed, root: Path) -> None:
    argv = [sys.executable, "-c", _ABANDON]
    killed = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=60)
    left = killed.stdout.strip()
    assert Path(left).is_dir()
    assert {"munged", "slurmctld", "slurmd", "slurmstepd"} <= names_below(left)
    remove_abandoned()
    assert not Path(left).exists()
    assert not names_below(left)
    assert slurm.run("scontrol", "ping")


def names_below(folder: str) -> set[str]:
    """Names of live processes that work for the cluster in `folder`."""
    found = set()
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.environ().get("SLURM_CONF", "")]
            words += [str(c.laddr) for c in process.net_connections(kind="unix")]
        except psutil.Error:
            continue
        if any(folder in word for word in words):
            found.add(process.name().split(":")[0])
    return found


def test_jobs_see_their_nodes_name_and_gpus(slurm: Testbed) -> None:
    script = "srun sh -c 'echo $(hostname) $SLURMD_NODENAME $ROCR_VISIBLE_DEVICES'"
    job = slurm.submit(script, "--nodes=2", "--nodelist=a2,b1", "--gres=gpu:2")
    slurm.wait_state(job, "COMPLETED")
    assert sorted(slurm.log_of(job).splitlines()) == ["a2 a2 0,1", "b1 b1 0,1"]
