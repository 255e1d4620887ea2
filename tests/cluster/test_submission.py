"""The sbatch line of a launch, word by word, and that a real SLURM takes it."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from perfproof.cluster import exclude, utc
from tests.cluster.slurm_conf import Layout
from tests.cluster.testbed import Testbed, missing
from tests.workflow.tree import copy_repository

LISTED = ("gpu-J01", "gpu-c")


@pytest.fixture(scope="module")
def refused(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Arguments of each sbatch of a 2 x 8-GPU run; a stand-in notes them and takes no job."""
    folder = tmp_path_factory.mktemp("submission")
    tree = copy_repository(root, folder / "clone")
    site = tree / "config" / "clusters" / "mi355x.yaml"
    keys = {"partition": "gpu", "constraint": "mi355x", "exclude": ["gpu-c"]}
    site.write_text(yaml.safe_dump(yaml.safe_load(site.read_text()) | keys))
    _exclude(tree, "gpu-J01")
    stand_in(folder / "bin" / "sbatch", folder / "calls")
    words = ["--profile", "slurm", "perf_report", "--config", "cluster=mi355x", "nodes=2"]
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:/bin"
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *words, "workload=embedded", "preflight=false"],
        cwd=tree,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    calls = sorted((folder / "calls").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    assert calls, done.stdout + done.stderr
    return [json.loads(path.read_text()) for path in calls]


def _exclude(tree: Path, name: str) -> None:
    now = utc.text(utc.now())
    words = {"reason": "bad", "evidence": "x", "by": "me", "expires": "never"}
    node = {"name": name, "first_seen": now, "last_seen": now, **words}
    exclude.add(tree / exclude.EXCLUDE_FILE, exclude.ExcludedNode.model_validate(node))


def stand_in(program: Path, calls: Path) -> None:
    """An executable that writes its arguments into `calls` and fails."""
    program.parent.mkdir()
    calls.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"json.dump(sys.argv[1:], open(f'{calls}/{{os.getpid()}}.json', 'w'))\n"
        "sys.exit('sbatch: error: not today')\n"
    )
    program.chmod(0o755)


def test_line_of_a_run_on_two_nodes_with_eight_gpus(refused: list[list[str]]) -> None:
    words = refused[0]
    values = dict(itertools.pairwise(words))
    assert values["--job-name"].startswith("perfproof_")
    assert "/rule_launch/hydragnn_baseline_2_0/%j.log" in values["--output"]
    begin, end = words.index("--comment"), words.index("-D")
    assert words[begin:end] == [
        *("--comment", "rule_launch_wildcards_hydragnn_baseline_2_0"),
        *("-p", "gpu", "-t", "60", "-C", "mi355x"),
        *("--nodes=2", "--no-requeue", "--ntasks=16", "--cpus-per-task=7"),
        *("--ntasks-per-node=8", "--mem=0", "--gpus-per-node=8"),
        "--exclude=gpu-J01,gpu-c",
    ]


def test_refused_submissions_are_repeated_as_often_as_the_profile_says(
    refused: list[list[str]],
) -> None:
    assert len(refused) == 3


@pytest.fixture
def gpu_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    """Two nodes with 64 CPUs and eight GPUs, and two that no run should get."""
    layout = Layout(nodes=("n1", "n2"), absent=LISTED, cpus=64, partition="gpu", features="mi355x")
    if reason := missing(layout):
        pytest.skip(reason)
    with Testbed(layout) as cluster:
        yield cluster


@pytest.mark.cluster
def test_a_real_slurm_takes_the_line(gpu_nodes: Testbed, refused: list[list[str]]) -> None:
    """The same options; the log and the command are the test's."""
    begin = refused[0].index("--comment")
    options = refused[0][begin : refused[0].index("-D")]
    srun = "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=7"
    tell = shlex.quote("echo $SLURMD_NODENAME $SLURM_LOCALID $ROCR_VISIBLE_DEVICES")
    job = gpu_nodes.submit(f"{srun} sh -c {tell}", *options)
    told = gpu_nodes.wait_state(job, "COMPLETED")
    assert (told["NumNodes"], told["NumTasks"], told["CPUs/Task"]) == ("2", "16", "7")
    assert sorted(gpu_nodes.log_of(job).splitlines()) == sorted(
        f"{node} {rank} 0,1,2,3,4,5,6,7" for node in ("n1", "n2") for rank in range(8)
    )
