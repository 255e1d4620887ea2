"""A piece of JSON that does not parse, with the usual faults of profilers' writers mended."""

from __future__ import annotations

import json
import re
from typing import Any

_STRING = re.compile(r'("(?:[^"\\]|\\.)*")', re.DOTALL)
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])|\\')
_CONTROL = re.compile(r"[\x00-\x1f]")
_NOT_FINITE = re.compile(r"(?<![\w.])[-+]?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE)
_COMMA_BEFORE_END = re.compile(r",(?=\s*[}\]])")


class JsonNumber(str):
    """A number with a point or exponent, as its digits stand in the file."""

    __slots__ = ()


def mended(text: str) -> Any:
    """The value of `text`, or None where it cannot be mended.

    Backslashes that begin no escape stand for themselves, control characters become blanks,
    numbers that are not finite null; a comma before a closing bracket goes. Numbers with a point
    stay text.
    """
    parts = _STRING.split(text)
    parts[0::2] = [_outside(part) for part in parts[0::2]]
    parts[1::2] = [_inside(part) for part in parts[1::2]]
    try:
        return json.loads("".join(parts), parse_float=JsonNumber)
    except (ValueError, RecursionError):
        return None


def _inside(string: str) -> str:
    kept = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", string)
    return _CONTROL.sub(" ", kept)


def _outside(text: str) -> str:
    return _COMMA_BEFORE_END.sub("", _NOT_FINITE.sub("null", text))
