"""Lines of an export, gzip or plain; a broken end of the file leaves those before it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

_CHUNK, _WITH_HEADER = 1 << 16, 16 + zlib.MAX_WBITS


def raw_lines(path: Path) -> Iterator[bytes]:
    """Whole lines, without their ends; blank ones left out."""
    left = bytearray()
    for piece in _unpacked(path):
        left += piece
        if b"\n" in piece:
            *lines, rest = bytes(left).split(b"\n")
            left = bytearray(rest)
            yield from (line for line in lines if line.strip())
    if left.strip():
        yield bytes(left)


def _unpacked(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        if not packed:
            yield from iter(lambda: stream.read(_CHUNK), b"")
            return
        unpacker, data = zlib.decompressobj(_WITH_HEADER), b""
        try:
            while data := data or stream.read(_CHUNK):
                yield unpacker.decompress(data)
                data = unpacker.unused_data
                if unpacker.eof:
                    unpacker = zlib.decompressobj(_WITH_HEADER)
        except zlib.error:
            return
