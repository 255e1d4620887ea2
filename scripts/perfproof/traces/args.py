"""The `args` of trace events: typed, tolerant of odd types, absent fields and null."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from msgspec import Raw

from perfproof.traces.intervals import Ints
from perfproof.traces.model import Collective


class Args(
    msgspec.Struct,
    gc=False,
    rename={
        "external": "External id",
        "old": "external id",
        "collective": "Collective name",
    },
):
    """Arguments shared by GPU events, calls and operations."""

    correlation: Any = 0
    external: Any = None
    old: Any = None
    stream: Any = -1
    device: Any = -1
    bytes: Any = -1
    collective: Any = None


class _CollectiveArgs(
    msgspec.Struct,
    gc=False,
    rename={
        "name": "Collective name",
        "process_group": "Process Group Name",
        "ranks": "Process Group Ranks",
        "group_size": "Group size",
        "in_nelems": "In msg nelems",
        "out_nelems": "Out msg nelems",
        "in_split": "In split size",
        "out_split": "Out split size",
    },
):
    name: Any = None
    process_group: Any = None
    ranks: Any = None
    group_size: Any = None
    dtype: Any = None
    in_nelems: Any = None
    out_nelems: Any = None
    in_split: Any = None
    out_split: Any = None


_ARGS = msgspec.json.Decoder(Args)
_COLLECTIVE_ARGS = msgspec.json.Decoder(_CollectiveArgs)
_NO_ARGS = Args()


def decode_args(raw: Raw) -> Args:
    """Arguments of one event; all absent where they are null or malformed."""
    try:
        return _ARGS.decode(raw) if raw else _NO_ARGS
    except (msgspec.MsgspecError, RecursionError):
        return _NO_ARGS


def to_ints(values: list[Any], missing: int) -> Ints:
    """Integers from JSON values; what is no integer becomes `missing`."""
    try:
        found: Ints = np.array(values, dtype=np.int64)
        if found.ndim == 1:  # lists of one length would make a matrix
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([as_int(value, missing) for value in values], dtype=np.int64)


def as_int(value: Any, missing: int) -> int:
    """`value` as an int64, or `missing`."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return missing
    return number if abs(number) < 2**63 else missing


def external_id(args: Args) -> Any:
    """The id that ties GPU events and calls to CPU operations (2021 files spell it lower case)."""
    return args.external if args.external is not None else args.old or 0


def to_collective(raw: Raw) -> Collective | None:
    """The collective that the arguments of a kernel describe, if they name one."""
    try:
        args = _COLLECTIVE_ARGS.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(args.name, str):
        return None
    return Collective(
        name=args.name,
        process_group=_text(args.process_group),
        ranks=_text(args.ranks),
        group_size=_number(args.group_size),
        dtype=_text(args.dtype),
        in_nelems=_number(args.in_nelems),
        out_nelems=_number(args.out_nelems),
        in_split=_text(args.in_split),
        out_split=_text(args.out_split),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
