from __future__ import annotations

import time

import psutil
import pytest

from perfproof.training.collectors.host import Host
from perfproof.training.collectors.job import Job
from perfproof.training.collectors.network import Network


def test_the_host_says_what_psutil_says() -> None:
    host = Host()
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        pass
    found = {(name, labels): value for name, labels, value in host.read()}
    plain = {name: value for (name, labels), value in found.items() if not labels}
    cores = [v for (name, _), v in found.items() if name == "omnistat_host_cpu_core_utilization"]
    count = psutil.cpu_count() or 0
    assert plain["omnistat_host_cpu_num_logical_cores"] == count == len(cores)
    assert plain["omnistat_host_mem_total_bytes"] == psutil.virtual_memory().total
    assert 0 < plain["omnistat_host_mem_available_bytes"] < plain["omnistat_host_mem_total_bytes"]
    # The loop above kept a core busy.
    assert 0.2 < plain["omnistat_host_cpu_aggregate_core_utilization"] <= count
    assert abs(sum(cores) - plain["omnistat_host_cpu_aggregate_core_utilization"]) < 1e-9
    assert all(0 <= share <= 1 for share in cores)


def test_without_time_between_two_looks_no_core_has_a_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = psutil.cpu_times(percpu=True)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: stopped)
    names = {name for name, _, _ in Host().read()}
    assert "omnistat_host_cpu_core_utilization" not in names
    assert "omnistat_host_cpu_aggregate_core_utilization" not in names


def test_no_gpu_metric_comes_from_the_host() -> None:
    names = {name for source in (Host(), Network()) for name, _, _ in source.read()}
    assert not [name for name in names if name.startswith("rocm_")]


def test_the_job_is_one_series() -> None:
    ((name, labels, value),) = Job("4711", 2, "slurm").read()
    assert (name, value) == ("rmsjob_info", 1.0)
    assert dict(labels) == {"jobid": "4711", "nodes": "2", "jobstep": "-1", "type": "slurm"}
