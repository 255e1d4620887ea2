"""Which catalog a run may cite."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from perfproof.claims.catalogs import fitting, read_catalog
from perfproof.core.errors import InputError
from perfproof.schema.levers import Lever, LeverCatalog
from tests.claims.runs import make_foms

LEVER = "levers: [{id: a-lever, description: d, classes: [cpu_dispatch]}]"


def catalog(folder: Path, model: str, name: str = "") -> Path:
    path = folder / f"{name or model}.yaml"
    path.write_text(f"model: {model}\n{LEVER}\n")
    return path


def chosen(paths: list[Path], run_id: str, model: str | None = None) -> str | None:
    foms = make_foms(None)
    foms.integrity.model = model
    found = read_catalog(paths, run_id, foms)
    return found.model if found else None


def test_the_records_of_the_run_name_the_model(tmp_path: Path) -> None:
    both = [catalog(tmp_path, "orbit2"), catalog(tmp_path, "hydragnn")]
    assert chosen(both, "artifacts/x", "orbit2") == "orbit2"
    assert chosen(both, "artifacts/x", "hydragnn") == "hydragnn"
    assert chosen(both, "artifacts/x", "gpt") is None
    assert chosen(both[:1], "orbit2/x", "hydragnn") is None


def test_without_such_a_record_the_run_id_names_it_to_the_only_catalog(tmp_path: Path) -> None:
    both = [catalog(tmp_path, "orbit2"), catalog(tmp_path, "hydragnn")]
    assert chosen(both[:1], "orbit2/x") == "orbit2"
    assert chosen(both[:1], "artifacts/x") is None
    assert chosen(both, "orbit2/x") is None
    assert read_catalog(both[:1], "orbit2/x", None) is not None


def test_no_catalog() -> None:
    assert chosen([], "orbit2/x", "orbit2") is None


def test_two_catalogs_of_one_model(tmp_path: Path) -> None:
    both = [catalog(tmp_path, "orbit2"), catalog(tmp_path, "orbit2", "other")]
    with pytest.raises(InputError, match=r"other\.yaml: model: a second catalog of 'orbit2'"):
        chosen(both, "orbit2/x", "orbit2")
    assert chosen(both[:1] * 2, "orbit2/x", "orbit2") == "orbit2"


NEEDS = {
    "amd": "{gpu: true, vendor: [amd]}",
    "gpu": "{gpu: true}",
    "fp32": "{dtype: [float32]}",
    "two": "{ranks_min: 2}",
    "many": "{nodes_min: 4}",
    "any": "{}",
}


@pytest.mark.parametrize(
    ("device", "facts", "left"),
    [
        ("NVIDIA H200", {}, "gpu fp32 two many any"),
        ("AMD Instinct MI300X", {}, "amd gpu fp32 two many any"),
        ("AMD EPYC 9554", {}, "fp32 two many any"),
        ("a device nobody knows", {}, "amd gpu fp32 two many any"),
        (None, {}, "amd gpu fp32 two many any"),
        ("NVIDIA H200", {"dtype": "bfloat16", "ranks": 1, "node_list": ["a"]}, "gpu any"),
        ("NVIDIA H200", {"ranks": 8, "node_list": ["a", "b"]}, "gpu fp32 two any"),
    ],
)
def test_what_the_run_rules_out_is_not_cited(
    device: str | None, facts: dict[str, object], left: str
) -> None:
    levers = [
        Lever.model_validate({"id": name, "description": name, "requires": yaml.safe_load(needs)})
        for name, needs in NEEDS.items()
    ]
    unknown = {"device_name": device, "dtype": None, "ranks": None, "node_list": None} | facts
    run = make_foms(None).integrity.model_copy(update=unknown)
    kept = fitting(LeverCatalog(model="orbit2", levers=levers), run)
    assert [lever.id for lever in kept.levers] == left.split()
