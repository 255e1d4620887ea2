from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from perfproof.core.config import load_levers
from perfproof.core.files import read_record, write_record
from perfproof.levers.proof import findings
from perfproof.schema.run import RankReport
from perfproof.training.embedded.context import Context
from perfproof.training.embedded.hydragnn import train as hydragnn
from perfproof.training.embedded.orbit2 import train as orbit2
from perfproof.training.identity import Identity
from perfproof.training.resolve import resolve
from tests.levers.runs import CPU, lever, manifest, without_rank0
from tests.training.tiny_runs import write_config

TRAINERS = {"hydragnn": hydragnn.train, "orbit2": orbit2.train}
KERNELS = frozenset({"ampere_sgemm_128x64_nn", "flash_fwd_kernel<bf16>"})


def seen(proof: dict[str, Any], kernels: frozenset[str] | None = None, **rank0: Any) -> Any:
    """What one proof finds in a run of the lever."""
    one = lever(effect_proof=proof)
    found = findings(one, manifest("one", **rank0), kernels)
    assert {finding.lever for finding in found} <= {"one"}
    return [finding.seen for finding in found]


@pytest.mark.parametrize(
    ("proof", "rank0", "expected"),
    [
        ({"dtype": "bfloat16"}, {}, True),
        ({"dtype": "float32"}, {}, False),
        ({"dtype": "float32"}, {"dtype": "unknown"}, None),
        ({"num_workers": 1}, {}, True),
        ({"num_workers": 0}, {}, False),
        ({"batch_size": 8}, {"effects": {"batch_size": "8"}}, True),
        ({"batch_size": 8}, {"effects": {"batch_size": "4"}}, False),
        ({"batch_size": 8}, {}, None),
        ({"env": {"A": "1"}}, {"env": {"A": "1"}}, True),
        ({"env": {"A": "1"}}, {"env": {"A": "(unset)"}}, False),
        ({"env": {"A": "1"}}, {}, None),
        ({"effects": {"compile": "on"}}, {"effects": {"compile": "on"}}, True),
        ({"effects": {"compile": "on"}}, {"effects": {"compile": "off"}}, False),
        ({"effects": {"compile": "on"}}, {}, None),
    ],
)
def test_settings_are_held_to_what_rank_0_reports(
    proof: dict[str, Any], rank0: dict[str, Any], expected: bool | None
) -> None:
    assert seen(proof, **rank0) == [expected]


@pytest.mark.parametrize(
    ("proof", "kernels", "expected"),
    [
        ({"kernel": "bf16"}, KERNELS, True),
        ({"kernel": "^triton_"}, KERNELS, False),
        ({"kernel": "bf16"}, None, None),
        ({"kernel": "bf16"}, frozenset(), None),
        ({"no_kernel": "flash"}, KERNELS, False),
        ({"no_kernel": "cudnn"}, KERNELS, True),
        ({"no_kernel": "cudnn"}, None, None),
    ],
)
def test_kernels_are_looked_for_in_the_trace(
    proof: dict[str, Any], kernels: frozenset[str] | None, expected: bool | None
) -> None:
    assert seen(proof, kernels) == [expected]


def test_kernels_are_not_asked_for_on_a_cpu() -> None:
    proof = {"dtype": "bfloat16", "kernel": "bf16", "no_kernel": "flash"}
    assert seen(proof, None, device=CPU) == [True]


def test_all_of_a_proof_is_looked_for_and_said() -> None:
    one = lever(effect_proof={"dtype": "float32", "num_workers": 1, "kernel": "^triton_"})
    assert [finding.what for finding in findings(one, manifest("one"), KERNELS)] == [
        "dtype: float32 wanted, bfloat16 found",
        "num_workers: 1 wanted, 1 found",
        "a kernel like '^triton_' wanted, none among 2 found",
    ]


def test_without_a_proof_or_a_report_nothing_is_seen() -> None:
    assert findings(lever(), manifest("one"), KERNELS) == []
    dead = without_rank0(manifest("one"))
    found = findings(lever(effect_proof={"num_workers": 1}), dead, KERNELS)
    assert [finding.seen for finding in found] == [None]


PICKED = {"changes": ["sdpa_blocks", "sdpa_var_agg"], "effects": {"sdpa_backends": "math"}}


def with_effects(*levers: str, **effects: str) -> Any:
    return manifest(*levers, effects={"sdpa_backends": "math", **effects})


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        ({"sdpa_blocks": "math"}, {"sdpa_blocks": "flash"}, [True, True]),
        ({"sdpa_blocks": "math"}, {"sdpa_blocks": "math"}, [True, False]),
        (
            {"sdpa_blocks": "a", "sdpa_var_agg": "b"},
            {"sdpa_blocks": "a", "sdpa_var_agg": "c"},
            [True, True],
        ),
        ({}, {"sdpa_blocks": "math"}, [True]),
    ],
)
def test_a_choice_that_the_baseline_makes_too_is_no_effect(
    here: dict[str, str], there: dict[str, str], expected: list[bool]
) -> None:
    one = lever(effect_proof=PICKED)
    found = findings(one, with_effects("one", **here), None, with_effects(**there))
    assert [finding.seen for finding in found] == expected


def test_nothing_need_change_against_a_run_with_the_lever() -> None:
    one = lever(effect_proof=PICKED)
    run = with_effects("one", sdpa_blocks="math")
    assert [finding.seen for finding in findings(one, run, None, run)] == [True]


# In this process and on a CPU: what compiles (minutes) or counts threads (a process) is left out.
REAL = [
    ("hydragnn", "precision_fp32"),
    ("orbit2", "activation_checkpointing_toggle"),
    ("orbit2", "batch_16"),
    ("orbit2", "bf16"),
    ("orbit2", "malloc_keep_freed"),
    ("orbit2", "null_unread_variable"),
    ("orbit2", "persistent_workers"),
    ("orbit2", "num_workers_2"),
    ("orbit2", "sdpa_efficient_vs_math"),
    ("orbit2", "sdpa_math"),
    ("orbit2", "tf32"),
]


@pytest.mark.parametrize(("model", "name"), REAL)
def test_shipped_levers_prove_their_effect_in_training_and_the_baseline_does_not(
    model: str, name: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TF32's switch is read when PyTorch is loaded, so here it must be seen as missing."""
    here = write_config(tmp_path)
    catalog = (root / "config" / "levers" / f"{model}.yaml").read_text()
    (here / "config" / "levers" / f"{model}.yaml").write_text(catalog)
    recipe = here / "config" / "recipes" / f"{model}.yaml"
    recipe.write_text(recipe.read_text().replace("batches_per_epoch: 8", "batches_per_epoch: 2"))
    one = next(item for item in load_levers(here, model).levers if item.id == name)
    loader = {"persistent_workers": "num_workers_2"}
    trial = "+".join(sorted({name, loader.get(name, name)}))
    assert (name == "tf32") is not all(proved(here, tmp_path, model, trial, one, monkeypatch))
    assert not all(proved(here, tmp_path, model, "baseline", one, monkeypatch))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As recipes ask for it: many threads on few cores stall."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def proved(
    here: Path, folder: Path, model: str, trial: str, one: Any, monkeypatch: pytest.MonkeyPatch
) -> list[bool | None]:
    resolved = resolve(here, model=model, trial=trial, cluster="here", nodes=1)
    profile = resolved.recipe.profile.model_copy(update={"enabled": False})
    training = resolved.recipe.training.model_copy(update={"epochs": 1})
    recipe = resolved.recipe.model_copy(update={"profile": profile, "training": training})
    resolved = resolved.model_copy(update={"recipe": recipe})
    directory = folder / trial
    write_record(directory / "recipe.json", resolved)
    with monkeypatch.context() as patched:
        for key, value in resolved.env.items():
            patched.setenv(key, value)
        TRAINERS[model](Context(resolved, directory, Identity(0, 0, 1), torch.device("cpu")))
    report = read_record(directory / "rank0.json", RankReport)
    run = manifest(model=model).model_copy(update={"resolved": resolved, "rank0": report})
    return [finding.seen for finding in findings(one, run, None)]
