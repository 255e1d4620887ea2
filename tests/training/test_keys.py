from __future__ import annotations

from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.schema.config import Recipe
from perfproof.training.embedded.models import MODELS
from perfproof.training.keys import sections, set_key, settable

KNOWN = sections(MODELS["hydragnn"].architecture, MODELS["hydragnn"].data)


def recipe() -> dict[str, Any]:
    return Recipe(model="hydragnn", description="x").model_dump()


def changed(dotted: str, value: Any) -> dict[str, Any]:
    data = recipe()
    set_key(data, dotted, value, KNOWN, "levers.yaml")
    return data


def test_each_kind_of_key_is_set() -> None:
    assert changed("training.batch_size", 16)["training"]["batch_size"] == 16
    assert changed("training.learning_rate", 1)["training"]["learning_rate"] == 1
    assert changed("parallel.fsdp", 2)["parallel"]["fsdp"] == 2
    assert changed("architecture.hidden", 8)["architecture"] == {"hidden": 8}
    assert changed("env.NCCL_DEBUG", "INFO")["env"] == {"NCCL_DEBUG": "INFO"}
    assert changed("upstream.a.b", [1])["upstream"] == {"a": {"b": [1]}}


@pytest.mark.parametrize(
    ("dotted", "value", "says"),
    [
        ("training.bach_size", 1, "expected 'training.batch_size'"),
        ("training.batch_size", "16", "found '16'"),
        ("training.batch_size", True, "found True"),
        ("training.batch_size", 0, "greater than or equal to 1"),
        ("training.dtype", "float16", "'bfloat16'"),
        ("training.compile", 1, "valid boolean"),
        ("architecture.hiden", 8, "expected 'architecture.hidden'"),
        ("model", "orbit2", "unknown recipe key 'model'"),
        ("training", {}, "unknown recipe key 'training'"),
        ("env", {}, "unknown recipe key 'env'"),
        ("env.X", 1, "a string (quote it)"),
    ],
)
def test_wrong_keys_and_types_are_named(dotted: str, value: Any, says: str) -> None:
    with pytest.raises(InputError) as fault:
        changed(dotted, value)
    assert says in str(fault.value)
    assert str(fault.value).startswith("levers.yaml")


def test_a_value_is_not_taken_for_a_mapping() -> None:
    data = changed("upstream.a", 1)
    with pytest.raises(InputError, match="holds a value"):
        set_key(data, "upstream.a.b", 2, KNOWN, "levers.yaml")


def test_settable_lists_typed_keys_of_all_sections() -> None:
    keys = settable(KNOWN)
    assert keys == sorted(keys)
    assert {"training.batch_size", "profile.active", "parallel.fsdp", "data.n_train"} <= set(keys)
