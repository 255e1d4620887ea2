from __future__ import annotations

import os
from pathlib import Path

from perfproof.schema.config import Cluster
from perfproof.training.health import node_faults, probe_argv, probe_nodes
from perfproof.training.nodes import host_name, node_list

HERE = Cluster(cluster="here", description="")
OK = "NODE_HEALTH n1 home=OK shared=OK\n"


def test_silent_and_failing_nodes_are_at_fault_and_noise_is_not() -> None:
    text = f"srun: warning: n2 FAIL\n{OK}NODE_HEALTH n3 home=OK shared=FAIL failed=run_dir:EIO\n"
    assert node_faults(text, ["n1", "n2", "n3"]) == [
        "n2: no answer",
        "n3: home=OK shared=FAIL failed=run_dir:EIO",
    ]
    assert node_faults(OK, ["n1"]) == []


def test_srun_probes_each_node_once_and_survives_a_broken_one(tmp_path: Path) -> None:
    far = HERE.model_copy(update={"launcher": "srun", "shared_paths": ["/a"]})
    argv = probe_argv(far, ["n1", "n2"], tmp_path)
    assert argv[:4] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
    assert "--no-kill" in argv
    assert argv[-2:] == ["--shared-path", "/a"]


def test_this_machine_answers(tmp_path: Path) -> None:
    nodes = node_list(HERE, 1)
    assert nodes == [host_name()]
    assert probe_nodes(HERE, nodes, tmp_path, os.environ) == []
    line = (tmp_path / "node_health_probe.txt").read_text()
    assert line == f"NODE_HEALTH {host_name()} home=OK shared=OK\n"


def test_a_node_that_hangs_is_at_fault(tmp_path: Path) -> None:
    assert probe_nodes(HERE, ["n9"], tmp_path, os.environ, timeout_s=0.0) == ["n9: no answer"]
