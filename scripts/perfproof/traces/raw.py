"""A trace as the texts of its events: what rewrites traces must not touch what it keeps."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Raw

from perfproof.core.errors import InputError
from perfproof.core.files import canonical_json
from perfproof.traces.decode import EXPECTED, Decoded, Document, Event, read_bytes
from perfproof.traces.repair import Repairs, salvage

_EVENTS = "traceEvents"
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_TEXTS = msgspec.json.Decoder(list[Raw])
_EVENT_LIST = msgspec.json.Decoder(list[Event])
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_FAST, _SMALL = 6, 9  # levels of gzip

Text = Raw | bytes


@dataclass
class RawTrace:
    """Events as they stand in the file, decoded side by side, and the members beside them."""

    texts: list[Text]
    members: dict[str, Text]
    decoded: Decoded

    @property
    def events(self) -> list[Event]:
        """The decoded events; the n-th is of the n-th text."""
        return self.decoded.document.traceEvents


def read_raw(path: Path) -> RawTrace:
    """Read a trace, plain or gzip; a damaged one as far as it holds whole events."""
    repairs = Repairs()
    data = read_bytes(path, repairs)
    try:
        members, texts = _strict(data)
        events = _EVENT_LIST.decode(b"[" + b",".join(texts) + b"]")
    except _UNREADABLE:
        members, texts, events = _tolerant(data, path, repairs)
    meta = {key: _value(members.get(key)) for key in Document.__struct_fields__[1:]}
    return RawTrace(texts, members, Decoded(Document(events, **meta), repairs))


def _strict(data: bytes) -> tuple[dict[str, Text], list[Text]]:
    if data.lstrip()[:1] == b"[":
        return {}, list(_TEXTS.decode(data))
    members: dict[str, Text] = dict(_MEMBERS.decode(data))
    return members, list(_TEXTS.decode(members.pop(_EVENTS, b"")))


def _tolerant(
    data: bytes, path: Path, repairs: Repairs
) -> tuple[dict[str, Text], list[Text], list[Event]]:
    """Whole events of a damaged file; those whose fields are of a wrong type are left out."""
    found = salvage(data, repairs)
    if found is None:
        raise InputError(path, "no `traceEvents`", EXPECTED)
    texts: list[Text] = []
    events: list[Event] = []
    for text in found.events:
        try:
            events.append(msgspec.json.decode(text, type=Event))
            texts.append(text)
        except _UNREADABLE:
            repairs.drop(text.decode(errors="replace"))
    if not events:
        raise InputError(path, "no whole trace event", EXPECTED)
    members: dict[str, Text] = {key: msgspec.json.encode(v) for key, v in found.meta.items()}
    members.pop(_EVENTS, None)
    return members, texts, events


def _value(text: Text | None) -> object:
    return None if text is None else msgspec.json.decode(text)


def write_raw(path: Path, members: Mapping[str, Text], events: Iterable[Text]) -> int:
    """Write a trace, gzip when the name says so; returns its size in bytes. Whole or not at all."""
    head = b"".join(
        b"%s: %s,\n" % (canonical_json(key).strip().encode(), bytes(text))
        for key, text in sorted(members.items())
    )
    body = b",\n".join(map(bytes, events))
    return write_bytes(path, (b"{\n", head, b'"traceEvents": [\n', body, b"\n]\n}\n"), _SMALL)


def write_bytes(path: Path, parts: Iterable[bytes | memoryview], level: int = _FAST) -> int:
    """Write `parts` one after the other, gzip when the name says so; returns the file's size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as plain:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", level, plain, mtime=0) as packed:
                    _copy(parts, packed)
            else:
                _copy(parts, plain)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path.stat().st_size


def _copy(parts: Iterable[bytes | memoryview], to: io.BufferedIOBase) -> None:
    for part in parts:
        to.write(part)
