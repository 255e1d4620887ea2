"""The collectors' step beside the ranks' step, with all GPUs of the nodes in both."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfproof.schema.config import Cluster
from perfproof.training.collectors.choice import Choice, Where, command
from tests.cluster.slurm_conf import Layout
from tests.cluster.testbed import Testbed, missing

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Testbed]:
    layout = Layout(nodes=("n1", "n2"))
    if reason := missing(layout):
        pytest.skip(reason)
    with Testbed(layout) as cluster:
        yield cluster


def test_it_takes_nothing_from_the_ranks(two_nodes: Testbed, tmp_path: Path) -> None:
    """The ranks' step starts while the collectors' runs, and the signal reaches every node."""
    site = Cluster(
        cluster="here", description="", launcher="srun", vendor="amd", gpus_per_node=8,
        sample_interval_s=0.2,
    )  # fmt: skip
    where = Where(tmp_path, ["n1", "n2"], "7", "float32")
    sampler = shlex.join(command(Choice("sampler"), site, where))
    tell = shlex.quote("echo rank $SLURMD_NODENAME $ROCR_VISIBLE_DEVICES")
    ranks = "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 --gpus-per-node=8"
    script = (
        f"{sampler} > {tmp_path}/log 2>&1 & collector=$!\n"
        f"until [ $(grep -c collecting {tmp_path}/log) = 2 ]; do sleep 0.1; done\n"
        f"{ranks} sh -c {tell}\n"
        "kill -USR1 $collector; wait $collector; echo ended $?"
    )
    options = ("--nodes=2", "--exclusive", "--mem=0", "--gpus-per-node=8")
    job = two_nodes.submit(script, *options)
    two_nodes.wait_state(job, "COMPLETED")
    assert sorted(two_nodes.log_of(job).splitlines()) == [
        "ended 0",
        "rank n1 0,1,2,3,4,5,6,7",
        "rank n2 0,1,2,3,4,5,6,7",
    ]
    said = (tmp_path / "log").read_text()
    assert said.count("collected on n1") == said.count("collected on n2") == 1
    assert sorted(path.name for path in tmp_path.glob("samples-*")) == [
        "samples-n1.jsonl",
        "samples-n2.jsonl",
    ]
