from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from perfproof.core.files import read_record
from perfproof.schema.cluster import HealthReport
from perfproof.schema.config import Cluster, Container, Health
from perfproof.training.health import Clock, judged, node_faults, probe_argv, probe_nodes
from perfproof.training.nodes import host_name

HERE = Cluster(cluster="here", description="")
CLOCK = Clock(begun_s=100.0, ended_s=110.0, limit_s=5.0)
OK = "NODE_HEALTH n1 home=OK shared=OK time=105.000\n"


def test_silent_and_failing_nodes_are_at_fault_and_noise_is_not() -> None:
    bad = "NODE_HEALTH n3 home=OK shared=FAIL time=105.0 failed=shared:/a:EIO\n"
    report = judged(f"srun: warning: n2 FAIL\n{OK}{bad}", ["n1", "n2", "n3"], CLOCK, 0)
    assert node_faults(report) == [
        "n2: no answer",
        "n3: home=OK shared=FAIL failed=shared:/a:EIO",
    ]
    assert report.nodes[0].tests == {"home": "OK", "shared": "OK"}
    assert node_faults(judged(OK, ["n1"], CLOCK, 0)) == []


def test_srun_that_fails_by_itself_is_evidence_against_no_node() -> None:
    report = judged("srun: error: Unable to contact slurm controller\n", ["n1", "n2"], CLOCK, 1)
    assert report.nodes == []
    (fault,) = node_faults(report)
    assert "exit code 1" in fault
    assert "Unable to contact" in fault


def test_nodes_that_are_silent_to_the_deadline_are_at_fault() -> None:
    assert node_faults(judged("", ["n1", "n2"], CLOCK, None)) == [
        "n1: no answer",
        "n2: no answer",
    ]


@pytest.mark.parametrize(
    ("shown_s", "offset_s", "faults"),
    [(99.0, -1.0, 0), (115.5, 5.5, 1), (90.0, -10.0, 1), (110.0, 0.0, 0)],
)
def test_a_clock_is_off_by_its_distance_from_the_time_of_the_probe(
    shown_s: float, offset_s: float, faults: int
) -> None:
    report = judged(OK.replace("105.000", str(shown_s)), ["n1"], CLOCK, 0)
    assert report.nodes[0].clock_offset_s == offset_s
    assert len(node_faults(report)) == faults


def test_srun_probes_each_node_once_and_survives_a_broken_one(tmp_path: Path) -> None:
    far = HERE.model_copy(
        update={
            "launcher": "srun",
            "shared_paths": ["/a"],
            "data_paths": ["/d"],
            "container": Container(image="/i.sif"),
            "health": Health(timeout_s=40),
        }
    )
    argv = probe_argv(far, ["n1", "n2"], tmp_path)
    assert argv[:4] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
    assert "--no-kill" in argv
    words = dict(itertools.pairwise(argv))
    assert (words["--shared-path"], words["--data-path"], words["--image"]) == (
        "/a",
        "/d",
        "/i.sif",
    )
    assert words["--limit-s"] == "30"
    assert words["--container"].startswith("apptainer exec ")
    assert words["--container"].endswith(" /i.sif")
    assert probe_argv(HERE, ["n1"], tmp_path)[0] != "srun"


def test_this_machine_answers(tmp_path: Path) -> None:
    report = probe_nodes(HERE, [host_name()], tmp_path, os.environ)
    assert node_faults(report) == []
    assert read_record(tmp_path / "node_health.json", HealthReport) == report
    line = (tmp_path / "node_health_probe.txt").read_text()
    assert line.startswith(f"NODE_HEALTH {host_name()} home=OK shared=OK time=")


def test_a_node_that_hangs_is_at_fault(tmp_path: Path) -> None:
    quick = HERE.model_copy(update={"health": Health(timeout_s=0.001)})
    report = probe_nodes(quick, ["n9"], tmp_path, os.environ)
    assert node_faults(report) == ["n9: no answer"]
    assert "NODE_HEALTH n9 NO_ANSWER" in (tmp_path / "node_health_probe.txt").read_text()
