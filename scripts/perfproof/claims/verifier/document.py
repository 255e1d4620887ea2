"""The bytes of a trace file to a JSON document, damaged or not. Numbers with a point stay text."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class UnreadableError(ValueError):
    """A trace that cannot be read; the message says why."""


def read_document(path: Path) -> tuple[dict[str, Any], str]:
    """The document with its list `traceEvents`, and what was wrong with the file ("": nothing).

    Raises `UnreadableError`.
    """
    text, note = _text(path)
    document, damage = _document(text)
    if not isinstance(document.get("traceEvents"), list):
        raise UnreadableError("no list 'traceEvents'")
    return document, "; ".join(part for part in (note, damage) if part)


def _text(path: Path) -> tuple[str, str]:
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise UnreadableError(fault.strerror or "cannot be read") from None
    note = ""
    if data[:2] == b"\x1f\x8b":
        data, whole = _inflate(data)
        note = "" if whole else "the gzip stream ends early"
    return data.decode("utf-8", errors="replace"), note


def _inflate(data: bytes) -> tuple[bytes, bool]:
    try:
        return gzip.decompress(data), True
    except (EOFError, OSError, zlib.error):
        stream = zlib.decompressobj(wbits=31)
        try:
            return stream.decompress(data), False
        except zlib.error:
            raise UnreadableError("a damaged gzip stream") from None


def _document(text: str) -> tuple[dict[str, Any], str]:
    """The trace as an object; a cut or damaged list of events is read up to the damage."""
    try:
        loaded = json.loads(text, parse_float=str)
    except (json.JSONDecodeError, RecursionError):
        found = list(_events_until_damage(text))
        if not found:
            raise UnreadableError("not JSON") from None
        return {"traceEvents": found}, f"damaged JSON: {len(found)} events read before the damage"
    if isinstance(loaded, list):
        return {"traceEvents": loaded}, ""
    if not isinstance(loaded, dict):
        raise UnreadableError("neither an object nor a list of events")
    return loaded, ""


def _events_until_damage(text: str) -> Iterator[Any]:
    opening = re.search(r'"traceEvents"\s*:\s*\[', text)
    decoder = json.JSONDecoder(parse_float=str)
    at = opening.end() if opening else len(text)
    while at < len(text):
        at += len(text[at : at + 4096]) - len(text[at : at + 4096].lstrip(" \t\r\n,"))
        try:
            event, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return
        yield event
