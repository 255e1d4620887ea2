"""A log as blocks of whole lines, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

BLOCK_BYTES = 1 << 20


class LineBlocks:
    """The lines of a file, block by block, with `\\r` as a line break too (progress bars).

    A block starts at a line's start and ends with a line break; a NUL byte (a hole in the file)
    counts as one. Numbers are never cut: a stretch of more than `BLOCK_BYTES` without a break is
    no line of a log and is left out as a whole (`skipped_bytes`), and so is a last line without a
    break, which was cut off while it was written (`unfinished`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size_bytes = 0
        self.nul_bytes = 0
        self.skipped_bytes = 0
        self.unfinished = False

    def __iter__(self) -> Iterator[bytes]:
        rest, skipping = b"", False
        with self.path.open("rb") as stream:
            while chunk := stream.read(BLOCK_BYTES):
                data = rest + self._broken(chunk)
                begin = data.find(b"\n") + 1 if skipping else 0
                cut = data.rfind(b"\n") + 1
                rest = data[cut:]
                if cut > begin:
                    yield data[begin:cut]
                skipping = skipping and cut == 0
                if skipping or len(rest) > BLOCK_BYTES:
                    self.skipped_bytes += len(rest)
                    rest, skipping = b"", True
                self.skipped_bytes += begin
        self.unfinished = bool(rest.strip())

    def _broken(self, chunk: bytes) -> bytes:
        """The chunk with one kind of line break."""
        self.size_bytes += len(chunk)
        if nuls := chunk.count(b"\0"):
            self.nul_bytes += nuls
            chunk = chunk.replace(b"\0", b"\n")
        return chunk.replace(b"\r", b"\n")
