"""Names of directories."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.core.layout import (
    RECORDED_RUN,
    TRIAL_RUN,
    artifact_name,
    check_name_is_free,
    check_same_cluster,
    run_id,
    trial_of,
)
from perfproof.schema.config import Settings


def test_a_trial_lives_under_its_model() -> None:
    run = run_id(Settings(model="orbit2", trial="bf16+num_workers_2", nodes=2, repetition=1))
    assert run == "orbit2/trials/bf16+num_workers_2/nodes-2/rep-1"
    assert re.fullmatch(TRIAL_RUN, run)
    assert trial_of(run)["rep"] == "1"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("runs/mace_fp32_b32", "mace_fp32_b32"),
        ("runs/mace_fp32_b32/", "mace_fp32_b32"),
        ("x/h100_bert-small.json.gz", "h100_bert-small"),
        ("x/v100.pt.trace.json.gz", "v100"),
        ("My Run (2)", "my-run-2"),
        ("...", "unnamed"),
    ],
)
def test_recorded_runs_are_named_after_their_source(source: str, name: str, tmp_path: Path) -> None:
    settings = Settings(artifacts=str(tmp_path / source) if source != "..." else "/")
    assert artifact_name(settings) == name
    assert re.fullmatch(RECORDED_RUN, run_id(settings))


def test_a_name_is_never_shared_by_two_recordings(tmp_path: Path) -> None:
    taken = tmp_path / "artifacts" / "x"
    taken.mkdir(parents=True)
    (taken / "source.txt").write_text("first/x\n")
    check_name_is_free(Settings(artifacts="first/x"), tmp_path)
    with pytest.raises(InputError, match=r"belongs to first/x.*--config name="):
        check_name_is_free(Settings(artifacts="second/x"), tmp_path)


@pytest.mark.parametrize(("key", "other"), [("cluster", "h200"), ("workload", "upstream")])
def test_a_run_of_another_cluster_is_not_replaced(tmp_path: Path, key: str, other: str) -> None:
    settings = Settings()
    manifest = tmp_path / run_id(settings) / "manifest.json"
    check_same_cluster(settings, "embedded", tmp_path)
    manifest.parent.mkdir(parents=True)
    recorded = {"cluster": "local", "workload": "embedded"}
    manifest.write_text(json.dumps({"resolved": recorded}))
    check_same_cluster(settings, "embedded", tmp_path)
    manifest.write_text(json.dumps({"resolved": recorded | {key: other}}))
    with pytest.raises(InputError, match=rf"{key}: a run with {key} '{other}'; expected"):
        check_same_cluster(settings, "embedded", tmp_path)
