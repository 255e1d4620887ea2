"""Lines that every ORBIT-2 trainer prints: how ranks are laid out, how much memory is reserved."""

from __future__ import annotations

import re

from perfproof.foms.formats.base import DECIMAL, GIB, LogFormat
from perfproof.foms.log import Log

_WORLD = re.compile(rb"world_size\s+([0-9]{1,9})\s+world_rank\s+[0-9]+")
_LAYOUT = re.compile(
    rb"fsdp_size\s+([0-9]{1,9})\s+simple_ddp_size\s+([0-9]{1,9})\b"
    rb"(?:\s+tensor_par_size\s+([0-9]{1,9})\b)?(?:\s+seq_par_size\s+([0-9]{1,9})\b)?"
)
# `torch.cuda.memory_reserved: 7.57GB` is the byte count over 1024^3.
_RESERVED = re.compile(rb"memory_reserved: *(" + DECIMAL + rb") *GB")


class Orbit2Header(LogFormat):
    """Layout and memory lines of ORBIT-2."""

    name = "orbit2_header"
    trainer = "orbit2"
    needles = (b"world_size ", b"fsdp_size ", b"memory_reserved: ")

    def __init__(self) -> None:
        self.ranks: int | None = None
        self.data_ranks: int | None = None
        self.reserved_gib: float | None = None

    def feed(self, data: bytes) -> None:
        """Read one block; the first header counts."""
        if self.data_ranks is None and (layout := _LAYOUT.search(data)):
            fsdp, ddp, tensor, sequence = (int(size or 1) for size in layout.groups())
            self.data_ranks = fsdp * ddp
            self.ranks = self.ranks or fsdp * ddp * tensor * sequence
        if self.ranks is None and (world := _WORLD.search(data)):
            self.ranks = int(world[1])
        # Most lines repeat the same value: read each distinct one once.
        peaks = [float(value) for value in set(_RESERVED.findall(data))]
        if peaks:
            self.reserved_gib = max(*peaks, self.reserved_gib or 0.0)

    @property
    def found(self) -> bool:
        """Never: a header is no training."""
        return False

    def finish(self, log: Log) -> None:
        """Add layout and memory."""
        log.ranks = self.ranks or log.ranks
        log.data_ranks = self.data_ranks or log.data_ranks
        if self.reserved_gib is not None:
            log.add_reserved(self.reserved_gib * GIB)


FORMAT = Orbit2Header
