"""The bytes of a kineto trace to typed events, decoding only the fields that analysis needs.

Strict decoding first (fast); where the file is not strict JSON or an event is malformed,
`perfproof.traces.repair` recovers what is whole and says what it did.
"""

from __future__ import annotations

import contextlib
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from perfproof.core.errors import InputError
from perfproof.traces.repair import Repairs, Salvage, salvage

EXPECTED = "a kineto trace (JSON with a `traceEvents` list, plain or gzip)"
_NOTHING = Raw(b"")
_UNREADABLE = (msgspec.MsgspecError, RecursionError)  # the second for nesting beyond all use
_GZIP = b"\x1f\x8b"


class Event(msgspec.Struct, gc=False):
    """One trace event. `ts` and `dur` stay text: a float would lose nanoseconds."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    ts: Raw = _NOTHING
    dur: Raw = _NOTHING
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    id: Raw = _NOTHING
    args: Raw = _NOTHING


class Document(msgspec.Struct):
    """A whole trace file."""

    traceEvents: list[Event]  # noqa: N815 (the key in the file)
    distributedInfo: Any = None  # noqa: N815
    deviceProperties: Any = None  # noqa: N815
    baseTimeNanoseconds: Any = None  # noqa: N815


@dataclass
class Decoded:
    """Events of a file in file order, its metadata, and what had to be repaired."""

    document: Document
    repairs: Repairs = field(default_factory=Repairs)


_DOCUMENT = msgspec.json.Decoder(Document)
_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)


def decode_file(path: Path) -> Decoded:
    """Decode a trace, plain or gzip. Raises `InputError` when the file is no trace at all."""
    repairs = Repairs()
    return decode_bytes(read_bytes(path, repairs), path, repairs)


def decode_bytes(data: bytes, path: Path, repairs: Repairs) -> Decoded:
    """Decode the JSON text of the trace at `path`; adds to `repairs` what was repaired."""
    try:
        return Decoded(_strict(data), repairs)
    except (*_UNREADABLE, UnicodeDecodeError):
        return _tolerant(data, path, repairs)


def read_bytes(path: Path, repairs: Repairs) -> bytes:
    """The JSON text of a trace, plain or gzip. Raises `InputError` when there is none."""
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise InputError(path, fault.strerror or "unreadable", EXPECTED) from None
    if data[:2] == _GZIP:
        data = gunzip(data, repairs)
    if not data.strip():
        raise InputError(path, "empty file", EXPECTED)
    return data


def _strict(data: bytes) -> Document:
    if data.lstrip()[:1] == b"[":
        return Document(_EVENTS.decode(data))
    return _DOCUMENT.decode(data)


def gunzip(data: bytes, repairs: Repairs) -> bytes:
    """Decompress all gzip members; a cut or corrupt tail costs only itself."""
    parts: list[bytes] = []
    while data:
        inflater = zlib.decompressobj(wbits=31)
        whole = _inflate(inflater, data, parts)
        if not whole or not inflater.eof:
            repairs.truncated_gzip = True
            break
        data = inflater.unused_data.lstrip(b"\0")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate(inflater: Any, data: bytes, parts: list[bytes]) -> bool:
    """Decompress one member onto `parts`; on an error keep what came out before it."""
    try:
        parts.append(inflater.decompress(data))
    except zlib.error:
        return _inflate_blocks(data, parts)
    return True


def _inflate_blocks(data: bytes, parts: list[bytes]) -> bool:
    """Decompress bit by bit up to the fault: a failing call gives nothing of its input."""
    inflater = zlib.decompressobj(wbits=31)
    for at in range(0, len(data), 4096):
        good = inflater.copy()
        try:
            parts.append(inflater.decompress(data[at : at + 4096]))
        except zlib.error:
            _inflate_bytes(good, data[at : at + 4096], parts)
            return False
    return True


def _inflate_bytes(inflater: Any, data: bytes, parts: list[bytes]) -> None:
    with contextlib.suppress(zlib.error):
        for byte in data:
            parts.append(inflater.decompress(bytes((byte,))))


def _tolerant(data: bytes, path: Path, repairs: Repairs) -> Decoded:
    found = salvage(data, repairs)
    if found is None:
        raise InputError(path, "no `traceEvents`", EXPECTED)
    events = _events_of(found, repairs)
    if not events:
        raise InputError(path, "no whole trace event", EXPECTED)
    meta = {key: found.meta.get(key) for key in Document.__struct_fields__[1:]}
    return Decoded(Document(events, **meta), repairs)


def _events_of(found: Salvage, repairs: Repairs) -> list[Event]:
    """Decode salvaged events: all at once, or one by one when a type is wrong in some."""
    try:
        return _EVENTS.decode(b"[" + b",".join(found.events) + b"]")
    except _UNREADABLE:
        return [event for text in found.events if (event := _one(text, repairs)) is not None]


def _one(text: bytes, repairs: Repairs) -> Event | None:
    try:
        return _EVENT.decode(text)
    except _UNREADABLE:
        repairs.drop(text.decode(errors="replace"))
        return None
