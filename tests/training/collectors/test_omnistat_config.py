from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

import pytest

from perfproof.schema.config import Dtype
from perfproof.training.collectors.omnistat_config import (
    PREFERRED_PORTS,
    PROFILES,
    SYSTEM_PORT,
    Setup,
    render,
)


def setup(
    dtype: Dtype = "bfloat16", *, folder: str = "/runs/7/telemetry", local: bool = False
) -> Setup:
    return Setup(Path(folder), 8101, "a1", 28428, dtype, counters=True, local=local)


def read(text: str) -> configparser.ConfigParser:
    """As Omnistat reads it."""
    parsed = configparser.ConfigParser()
    parsed.read_string(text)
    return parsed


@pytest.mark.parametrize("dtype", PROFILES)
def test_nothing_is_left_to_expand(dtype: Dtype) -> None:
    text = render(setup(dtype))
    assert not re.search(r"%\(|%%|\$|@\w+@|__\w+__|<\w+>|/path", text)
    parsed = read(text)
    for section in parsed.sections():
        assert all(parsed[section].values())


def test_detection_files_are_the_runs_own() -> None:
    rms = read(render(setup()))["omnistat.collectors.rms"]
    files = [value for key, value in rms.items() if key.endswith("_file")]
    assert len(files) == 2
    assert all(value.startswith("/runs/7/telemetry/") for value in files)
    assert rms["job_detection_mode"] == "file-based"


def test_a_percent_sign_in_a_path_is_one() -> None:
    parsed = read(render(setup(folder="/runs/50%(odd)s/t")))
    found = parsed["omnistat.collectors.rms"]["job_detection_file"]
    assert found == "/runs/50%(odd)s/t/omnistat_job"


def test_the_systems_port_is_never_ours() -> None:
    assert SYSTEM_PORT == 8001
    assert SYSTEM_PORT not in PREFERRED_PORTS
    assert read(render(setup()))["omnistat.collectors"]["port"] == "8101"


@pytest.mark.parametrize(
    ("dtype", "counter"),
    [("float64", "MOPS_F64"), ("float32", "MOPS_F32"), ("bfloat16", "MOPS_BF16")],
)
def test_counters_follow_the_type(dtype: Dtype, counter: str) -> None:
    parsed = read(render(setup(dtype)))
    profile = parsed["omnistat.collectors.rocprofiler"]["profile"]
    section = parsed[f"omnistat.collectors.rocprofiler.{profile}"]
    counters = json.loads(section["counters"])
    assert section["sampling_mode"] == "constant"
    assert "FETCH_SIZE" in counters
    assert "WRITE_SIZE" not in counters
    assert any(name.endswith(counter) for name in counters)
    assert all(isinstance(name, str) for name in counters)


def test_the_store_is_ours_and_omnistat_starts_none() -> None:
    usermode = read(render(setup()))["omnistat.usermode"]
    assert usermode.getboolean("external_victoria")
    assert (usermode["external_victoria_endpoint"], usermode["external_victoria_port"]) == (
        "a1",
        "28428",
    )
    assert "victoria_binary" not in usermode


def test_other_nodes_may_talk_to_it_only_where_there_are_any() -> None:
    assert "0.0.0.0" in read(render(setup()))["omnistat.collectors"]["allowed_ips"]
    assert "0.0.0.0" not in read(render(setup(local=True)))["omnistat.collectors"]["allowed_ips"]
