"""With a stand-in for Omnistat's program and, where it is installed, a real store."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.core.series import EXPORT_FILE, read_export
from perfproof.schema.config import Cluster
from perfproof.training.collectors.choice import Where, choose, command
from perfproof.training.collectors.collection import Collection
from perfproof.training.collectors.omnistat import Hold, environment, failed_nodes
from perfproof.training.collectors.omnistat_identity import find_omnistat
from perfproof.training.collectors.store import find_server
from perfproof.training.nodes import host_name

STANDIN = Path(__file__).with_name("standin_omnistat.py")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "omnistat-usermode"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {STANDIN} "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def store() -> Path:
    found = find_server()
    if found is None:
        pytest.skip("no victoria-metrics here (tests/cluster/packages.txt names the package)")
    return found


def cluster(**keys: Any) -> Cluster:
    return Cluster(cluster="here", description="", **{"telemetry": "omnistat", **keys})


def collection(run_dir: Path, **keys: Any) -> Collection:
    return Collection(cluster(**keys), run_dir, [host_name()], "run/1", "bfloat16", os.environ)


def calls(run_dir: Path) -> list[dict[str, Any]]:
    lines = (run_dir / "telemetry" / "calls.txt").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_it_is_started_stopped_and_its_samples_are_kept(
    program: Path, store: Path, tmp_path: Path
) -> None:
    made = collection(tmp_path / "run", omnistat=str(program))
    with made:
        assert (tmp_path / "run/telemetry/omnistat.config").is_file()
    record = made.record
    assert (record.collector, record.store, record.problems) == ("omnistat", "victoria_metrics", [])
    (node,) = record.nodes
    assert (node.node, node.state, node.samples) == (host_name(), "collected", 3)
    (series,) = read_export(tmp_path / "run" / "telemetry" / EXPORT_FILE)
    assert list(series.values) == [90, 91, 92]
    assert not (tmp_path / "run/telemetry/store").exists()
    first, last = calls(tmp_path / "run")
    config = str(tmp_path / "run/telemetry/omnistat.config")
    rest = ["--interval", "1", "--pushinterval", "1", "--localjob", "run/1"]
    assert first["words"] == ["--configfile", config, "--startexporters", *rest]
    assert last["words"] == ["--configfile", config, "--stopexporters", *rest]


@pytest.mark.parametrize(
    ("fault", "told"),
    [("crashes", "Unable to load amdsmi"), ("missing", "Missing exporter on localhost")],
)
def test_a_start_that_fails_is_an_error_with_what_was_said(
    fault: str,
    told: str,
    program: Path,
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMNISTAT_STANDIN", fault)
    made = collection(tmp_path / "run", omnistat=str(program))
    with pytest.raises(InputError, match=f"did not start on {host_name()}: .*{told}"):
        made.__enter__()
    assert made.record.nodes[0].state == "failed"
    assert made._process is not None
    assert made._process.poll() is not None
    with collection(tmp_path / "b", omnistat=str(program), telemetry_required=False) as tolerated:
        pass
    assert told in tolerated.record.problems[0]
    assert tolerated.record.file is None


def test_another_program_of_that_name_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "omnistat-usermode"
    other.write_text("#!/bin/sh\necho statistics of everything\n")
    other.chmod(0o755)
    with pytest.raises(InputError) as caught:
        find_omnistat(str(other))
    told = str(caught.value)
    assert "it offers no --configfile, so it is not the collector" in told
    assert "github.com/ROCm/omnistat" in told
    assert "that package is unrelated" in told


def test_what_is_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="omnistat-usermode: omnistat: no such program"):
        choose(cluster())
    found = choose(cluster(telemetry="auto", vendor="amd"))
    assert found.kind == "sampler"
    assert "no such program" in found.why
    with pytest.raises(InputError, match="no/such"):
        choose(cluster(telemetry="auto", vendor="amd", omnistat="/no/such"))


def test_it_needs_a_store(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin" if find_server() is None else "/bin-without-store")
    with pytest.raises(InputError, match="Omnistat needs it"):
        choose(cluster(omnistat=str(program)))


def test_auto_takes_it_on_amd_gpus_only(
    program: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    kinds = {
        vendor: choose(cluster(telemetry="auto", vendor=vendor)).kind
        for vendor in ("amd", "nvidia", "none")
    }
    assert kinds == {"amd": "omnistat", "nvidia": "sampler", "none": "sampler"}
    assert choose(cluster(telemetry="sampler", vendor="amd")).kind == "sampler"
    assert choose(cluster(telemetry="off")).kind == "off"


def test_counters_are_asked_for_by_type(program: Path, store: Path, tmp_path: Path) -> None:
    site = cluster(omnistat=str(program), sample_interval_s=0.5)
    where = Where(tmp_path, ["a1", "a2"], "4711", "float64")
    words = command(choose(site), site, where)
    text = " ".join(words)
    assert "--dtype float64 --counters" in text
    assert "--node a1 --node a2" in text
    assert "--interval-s 0.5" in text
    plain = cluster(omnistat=str(program), hardware_counters=False)
    assert "--counters" not in command(choose(plain), plain, where)


def test_a_job_of_several_nodes_is_told_its_nodes() -> None:
    hold = Hold("o", Path("v"), Path("f"), ("a1", "a2"), "4711", 1.0, local=False)
    env = environment({"PATH": "p", "http_proxy": "x", "HTTPS_PROXY": "y"}, hold)
    assert env == {
        "PATH": "p",
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": "a1,a2",
        "SLURM_JOB_NUM_NODES": "2",
    }
    assert "--localjob" not in hold.words("--startexporters")


@pytest.mark.parametrize(
    ("said", "bad"),
    [
        ("2 of 2 exporters available", []),
        ("Missing exporter on a2\n1 of 2 exporters available", ["a2"]),
        ("1 of 2 exporters available", ["a1", "a2"]),
        ("Missing exporter on localhost", ["a1", "a2"]),
        ("", ["a1", "a2"]),
    ],
)
def test_nodes_without_exporter(said: str, bad: list[str]) -> None:
    assert failed_nodes(said, ["a1", "a2"]) == bad
