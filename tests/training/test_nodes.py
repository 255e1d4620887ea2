"""The allocation, asked from a stand-in `scontrol` that answers as SLURM does."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.schema.config import Cluster
from perfproof.training.nodes import allocation, host_name

LOCAL = Cluster(cluster="here", description="")
FAR = Cluster(cluster="far", description="", launcher="srun")
TOLD = (
    "JobId=7 JobName=x ReqNodeList=(null) ExcNodeList=z[1-2] EndTime=1300 NodeList=n[1-2] "
    "BatchHost=n1 NumNodes=2"
)


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `scontrol` that fails as long as the file `away` exists."""
    program = tmp_path / "scontrol"
    program.write_text(
        f'#!/bin/sh\n[ -e {tmp_path}/away ] && echo "no controller" >&2 && exit 1\n'
        f'case "$*" in *hostnames\\ n\\[1-2\\]) echo n1; echo n2;; *job*) echo "{TOLD}";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def test_this_machine_where_there_is_no_job() -> None:
    found = allocation(LOCAL, 1, {})
    assert (found.nodes, found.end_unix_s) == ([host_name({})], None)


def test_nodes_and_end_of_a_job(scontrol: Path) -> None:
    found = allocation(FAR, 2, {"SLURM_JOB_ID": "7"})
    assert (found.nodes, found.end_unix_s) == (["n1", "n2"], 1300.0)
    assert allocation(FAR, 1, {"SLURM_JOB_ID": "7"}).nodes == ["n1"]


def test_a_local_run_in_a_job_has_its_node_and_the_jobs_end(scontrol: Path) -> None:
    found = allocation(LOCAL, 1, {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n5"})
    assert (found.nodes, found.end_unix_s) == (["n5"], 1300.0)


def test_too_few_nodes_are_an_error(scontrol: Path) -> None:
    with pytest.raises(InputError, match=r"2 node\(s\) in job 7; expected 3"):
        allocation(FAR, 3, {"SLURM_JOB_ID": "7"})


def test_srun_needs_a_job() -> None:
    with pytest.raises(InputError, match="no SLURM_JOB_ID; expected a SLURM job"):
        allocation(FAR, 2, {})


def test_a_controller_that_stays_away_is_an_error_with_its_words(scontrol: Path) -> None:
    (scontrol / "away").touch()
    with pytest.raises(InputError, match="no controller"):
        allocation(FAR, 2, {"SLURM_JOB_ID": "7"}, wait_s=0.0)
