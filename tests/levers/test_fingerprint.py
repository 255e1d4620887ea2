from __future__ import annotations

from typing import Any

import pytest

from perfproof.levers.fingerprint import before, fingerprint
from perfproof.schema.config import Parallel, Workload
from perfproof.schema.levers import Fingerprint
from tests.foms import logs
from tests.levers.runs import CPU, manifest, without_rank0


def report_versions(**found: str) -> Any:
    made = logs.manifest().rank0
    assert made is not None
    reasons = {k: v for k, v in made.versions.reasons.items() if k not in found}
    return made.versions.model_validate({**dict(made.versions), **found, "reasons": reasons})


def test_a_run_tells_its_conditions() -> None:
    versions = report_versions(torch="2.10.0+rocm7.2.2", rocm="7.2.53210-abc", driver="6.16.6")
    run = manifest("bf16", versions=versions, effects={"batch_size": "4096"})
    assert fingerprint(run) == Fingerprint(
        model="orbit2",
        workload=Workload.UPSTREAM,
        arch="gfx950",
        dtype="bfloat16",
        torch="2.10.0+rocm7.2.2",
        rocm="7.2.53210-abc",
        driver="6.16.6",
        nodes=1,
        ranks=8,
        fsdp=8,
        tensor_par=1,
        batch_size=4096,
    )


def test_a_cpu_is_a_cpu_whatever_the_machine() -> None:
    assert fingerprint(manifest(device=CPU)).arch == "cpu"


def test_a_run_that_never_trained_tells_what_was_asked_of_it_and_no_more() -> None:
    found = fingerprint(without_rank0(manifest()))
    assert (found.model, found.nodes, found.ranks) == ("orbit2", 1, 8)
    assert (found.arch, found.dtype, found.torch, found.batch_size) == (None,) * 4


@pytest.mark.parametrize(
    ("field", "rank0"),
    [
        ("dtype", {"dtype": "unknown"}),
        ("dtype", {"dtype": "float16"}),
        ("batch_size", {"effects": {"batch_size": "by cost"}}),
        ("batch_size", {"effects": {}}),
        ("driver", {"versions": report_versions(driver="unknown")}),
    ],
)
def test_what_is_no_value_is_not_known(field: str, rank0: dict[str, Any]) -> None:
    assert getattr(fingerprint(manifest(**rank0)), field) is None


@pytest.mark.parametrize(
    ("model", "workload", "parallel", "fsdp"),
    [
        ("orbit2", "upstream", {}, 8),
        ("orbit2", "upstream", {"simple_ddp": 4}, 2),
        ("orbit2", "upstream", {"tensor_par": 2}, 4),
        ("orbit2", "upstream", {"fsdp": 2}, 2),
        ("orbit2", "embedded", {}, 1),
        ("hydragnn", "embedded", {}, 1),
        ("hydragnn", "upstream", {}, None),
    ],
)
def test_the_sharded_size(
    model: str, workload: str, parallel: dict[str, int], fsdp: int | None
) -> None:
    resolved = manifest(model=model).resolved
    recipe = resolved.recipe.model_copy(update={"parallel": Parallel(**parallel)})
    changes = {"recipe": recipe, "workload": Workload(workload)}
    assert before(resolved.model_copy(update=changes)).fsdp == fsdp
