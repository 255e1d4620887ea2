"""The bytes of a trace file to a JSON document, damaged or not. Numbers with a point stay text."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfproof.claims.verifier.mend import JsonNumber, mended

_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
# Where an event object ends: another one or the end of the list follows.
_END_OF_EVENT = re.compile(r'\}(?=[\s,]*(?:\{\s*["}]|\]))')


class UnreadableError(ValueError):
    """A trace that cannot be read; the message says why."""


@dataclass
class Document:
    """A trace file: its members, its event objects, and what became of the rest."""

    header: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    mended: int = 0
    lost: list[str] = field(default_factory=list)
    """What could not be read, in words; empty for a whole file."""


def read_document(path: Path) -> Document:
    """The document, its damaged events mended or counted. Raises `UnreadableError`."""
    text, whole = _text(path)
    found = _document(text)
    if not whole:
        found.lost.insert(0, "the gzip stream ends early")
    return found


def _text(path: Path) -> tuple[str, bool]:
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise UnreadableError(fault.strerror or "cannot be read") from None
    whole = True
    if data[:2] == b"\x1f\x8b":
        data, whole = _inflate(data)
    return data.decode("utf-8-sig", errors="replace"), whole


def _inflate(data: bytes) -> tuple[bytes, bool]:
    try:
        return gzip.decompress(data), True
    except (EOFError, OSError, zlib.error):
        stream = zlib.decompressobj(wbits=31)
        try:
            return stream.decompress(data), False
        except zlib.error:
            raise UnreadableError("a damaged gzip stream") from None


def _document(text: str) -> Document:
    try:
        loaded = json.loads(text, parse_float=JsonNumber)
    except (ValueError, RecursionError):
        return _damaged(text)
    if isinstance(loaded, list):
        loaded = {"traceEvents": loaded}
    if not isinstance(loaded, dict):
        raise UnreadableError("neither an object nor a list of events")
    entries = loaded.pop("traceEvents", None)
    if not isinstance(entries, list):
        raise UnreadableError("no list 'traceEvents'")
    found = Document(loaded, [entry for entry in entries if isinstance(entry, dict)])
    if other := len(entries) - len(found.events):
        found.lost.append(f"{other} entries of traceEvents are no objects")
    return found


def _damaged(text: str) -> Document:
    """Event by event; behind one that cannot be read it goes on with the next object."""
    opening = _EVENTS.search(text)
    if opening is None and not text.lstrip().startswith("["):
        raise UnreadableError("not JSON")
    found = Document()
    end = _walk(text, opening.end() if opening else text.index("[") + 1, found)
    if not found.events:
        raise UnreadableError("damaged JSON without a whole event")
    if opening:
        _header(found, text[: opening.end()], text[end:])
    return found


def _walk(text: str, at: int, found: Document) -> int:
    """Events from offset `at` to the end of the list, whose offset it returns."""
    decoder = json.JSONDecoder(parse_float=JsonNumber)
    damaged = 0
    while (at := _skip(text, at)) < len(text) and text[at] != "]":
        try:
            event, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            event, at = _mended_event(text, at)
            found.mended += isinstance(event, dict)
        if isinstance(event, dict):
            found.events.append(event)
        else:
            damaged += 1
    if damaged:
        found.lost.append(f"{damaged} damaged events could not be read")
    if at >= len(text):
        found.lost.append(f"damaged JSON: cut after {len(found.events)} events")
    return at


def _mended_event(text: str, at: int) -> tuple[Any, int]:
    """The damaged event at `at`, or None, and the offset behind it."""
    end = _END_OF_EVENT.search(text, at)
    if end is None:
        return None, len(text)
    return mended(text[at : end.end()]), end.end()


def _skip(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return between.end() if between else at


def _header(found: Document, head: str, tail: str) -> None:
    """The members beside the events; where those behind cannot be read, those before."""
    members = mended(head + tail)
    if not isinstance(members, dict):
        found.lost.append("the members outside traceEvents are damaged")
        members = mended(f"{head}]}}")
    found.header = members if isinstance(members, dict) else {}
