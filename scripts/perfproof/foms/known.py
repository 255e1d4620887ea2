"""A value or the reason why there is none, carried through a computation as one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from perfproof.schema.base import Reason, Reasoned

T = TypeVar("T")
Record = TypeVar("Record", bound=Reasoned)

Known: TypeAlias = T | Reason


class UnknownValueError(Exception):
    """A computation met a value that is not known; `known` turns it into the reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def need(value: T | Reason | None, reason: Reason = Reason.NOT_RECORDED) -> T:
    """The value; without one, leave the computation with its reason (`reason` for None)."""
    if isinstance(value, Reason):
        raise UnknownValueError(value)
    if value is None:
        raise UnknownValueError(reason)
    return value


def known(compute: Callable[[], T]) -> Known[T]:
    """What `compute` returns, or the reason with which it gave up."""
    try:
        return compute()
    except UnknownValueError as unknown:
        return unknown.reason


def record(kind: type[Record], **values: object) -> Record:
    """Build a `kind`; a field given as a `Reason` becomes null and keeps its reason."""
    reasons = {name: value for name, value in values.items() if isinstance(value, Reason)}
    fields = {name: None if name in reasons else value for name, value in values.items()}
    return kind.model_validate({**fields, "reasons": reasons})
