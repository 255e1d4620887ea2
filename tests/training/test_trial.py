from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.core.errors import InputError
from perfproof.schema.levers import Lever, LeverCatalog
from perfproof.training.trial import trial_levers, trial_name

WHERE = "config/levers/m.yaml"


def lever(name: str, **fields: object) -> Lever:
    return Lever.model_validate({"id": name, "description": name, **fields})


CATALOG = LeverCatalog(
    model="m",
    levers=[
        lever("bf16", set={"training.dtype": "bfloat16"}),
        lever("fp64", set={"training.dtype": "float64"}),
        lever("compile", set={"training.compile": True}, conflicts=["checkpoint"]),
        lever("checkpoint", set={"training.activation_checkpointing": True}),
        lever("fast", env={"MODE": "fast"}),
        lever("slow", env={"MODE": "slow"}),
        lever("also_fast", env={"MODE": "fast"}),
    ],
)
CONFLICTS = {("bf16", "fp64"), ("checkpoint", "compile"), ("fast", "slow"), ("also_fast", "slow")}


@given(st.sets(st.sampled_from([item.id for item in CATALOG.levers])))
def test_every_subset_resolves_or_names_its_conflict(ids: set[str]) -> None:
    bad = [pair for pair in itertools.combinations(sorted(ids), 2) if pair in CONFLICTS]
    if bad:
        with pytest.raises(InputError, match=r"levers '\w+' and '\w+'") as fault:
            trial_levers(trial_name(ids), CATALOG, WHERE)
        assert any(
            first in str(fault.value) and second in str(fault.value) for first, second in bad
        )
    else:
        found = trial_levers(trial_name(ids), CATALOG, WHERE)
        assert [item.id for item in found] == sorted(ids)


@given(st.lists(st.sampled_from(["bf16", "checkpoint", "fast"]), min_size=1, max_size=5))
def test_only_the_canonical_spelling_is_taken(ids: list[str]) -> None:
    trial, canonical = "+".join(ids), trial_name(ids)
    if trial == canonical:
        assert trial_levers(trial, CATALOG, WHERE)
    else:
        with pytest.raises(InputError) as fault:
            trial_levers(trial, CATALOG, WHERE)
        assert f"'{canonical}'" in str(fault.value)


def test_baseline_is_the_empty_trial() -> None:
    assert trial_name([]) == "baseline"
    assert trial_levers("baseline", CATALOG, WHERE) == []


@pytest.mark.parametrize(
    ("trial", "says"),
    [
        ("chekpoint", "expected 'checkpoint'"),
        ("baseline+bf16", "'bf16'"),
        ("baseline+baseline", "'baseline'"),
        ("", "unknown lever ''"),
        ("bf16+", "unknown lever ''"),
        ("BF16", "unknown lever 'BF16'"),
    ],
)
def test_wrong_names_say_what_is_right(trial: str, says: str) -> None:
    with pytest.raises(InputError) as fault:
        trial_levers(trial, CATALOG, WHERE)
    assert says in str(fault.value)
    assert "\n" not in str(fault.value)
