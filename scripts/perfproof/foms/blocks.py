"""A log as blocks of whole lines, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

BLOCK_BYTES = 1 << 20


class LineBlocks:
    """The lines of a file, block by block, with `\\r` as a line break too (progress bars).

    A block starts at a line's start and ends with a line break, unless a stretch of
    `BLOCK_BYTES` has none (binary data). A last line without a break was cut off while it was
    written: a number in it may lack digits, so it is not passed on and sets `unfinished`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size_bytes = 0
        self.nul_bytes = 0
        self.unfinished = False

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        with self.path.open("rb") as stream:
            while chunk := stream.read(BLOCK_BYTES):
                self.size_bytes += len(chunk)
                self.nul_bytes += chunk.count(b"\0")
                data = rest + chunk.replace(b"\r", b"\n")
                cut = data.rfind(b"\n") + 1
                if cut == 0 and len(data) >= BLOCK_BYTES:
                    cut = len(data)
                rest = data[cut:]
                if cut:
                    yield data[:cut]
        self.unfinished = bool(rest.strip())
