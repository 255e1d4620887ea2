"""No null without a reason, no reason without a null."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from perfproof.schema.base import REASON_MEANING, Reason, Reasoned
from perfproof.schema.foms import LossPoint


def test_a_null_needs_a_reason() -> None:
    with pytest.raises(ValidationError, match="null without a reason: loss"):
        LossPoint(epoch=0, loss=None)


def test_a_reason_needs_a_null() -> None:
    with pytest.raises(ValidationError, match="reason for a value that is there: loss"):
        LossPoint(epoch=0, loss=1.0, reasons={"loss": Reason.NON_FINITE})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_non_finite_number_is_not_a_value(value: float) -> None:
    with pytest.raises(ValidationError):
        LossPoint(epoch=0, loss=value)


def test_every_reason_has_a_meaning() -> None:
    assert set(REASON_MEANING) == set(Reason)


def test_every_record_with_optional_fields_is_reasoned() -> None:
    """A new nullable field in a record without `reasons` would be a null nobody explains.

    Configuration leaves out what does not matter; other fields say what their null means.
    """
    from perfproof.schema.export import SCHEMAS

    settings_like = {"settings", "recipe", "resolved_recipe", "levers", "cluster"}
    for name, model in SCHEMAS.items():
        if name in settings_like:
            continue
        for definition in [model, *_nested(model)]:
            nullable = [
                field
                for field, info in definition.model_fields.items()
                if type(None) in getattr(info.annotation, "__args__", ())
                and "null:" not in (info.description or "")
            ]
            if definition.__module__ in ("perfproof.schema.config", "perfproof.schema.levers"):
                continue
            assert not nullable or issubclass(definition, Reasoned), (definition, nullable)


def _nested(model: type) -> list[type]:
    from pydantic import BaseModel

    found: dict[type, None] = {}

    def visit(annotation: object) -> None:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation not in found:
                found[annotation] = None
                for info in annotation.model_fields.values():
                    visit(info.annotation)
            return
        for argument in getattr(annotation, "__args__", ()):
            visit(argument)

    for info in model.model_fields.values():  # type: ignore[attr-defined]
        visit(info.annotation)
    return list(found)
