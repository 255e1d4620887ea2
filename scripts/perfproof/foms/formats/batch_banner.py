"""The banner that batch scripts print before the trainer starts: `  Total ranks  : 16`."""

from __future__ import annotations

import re

from perfproof.foms.formats.base import LogFormat
from perfproof.foms.log import Log

_RANKS = re.compile(rb"\n  Total ranks +: *([0-9]{1,9}) *\n")
_BATCH = re.compile(rb"\n  Batch size +: *([0-9]{1,9}) *\n")


class BatchBanner(LogFormat):
    """Ranks and batch size from the banner."""

    name = "batch_banner"
    trainer = "batch script"
    needles = (b"  Total ranks ",)

    def __init__(self) -> None:
        self.ranks: int | None = None
        self.batch_size: int | None = None

    def feed(self, data: bytes) -> None:
        """Read one block; the first banner counts."""
        lines = b"\n" + data
        if self.ranks is None and (ranks := _RANKS.search(lines)):
            self.ranks = int(ranks[1])
        if self.batch_size is None and (batch := _BATCH.search(lines)):
            self.batch_size = int(batch[1])

    @property
    def found(self) -> bool:
        """Never: a banner is no training."""
        return False

    def finish(self, log: Log) -> None:
        """Add what the banner says and the trainer does not."""
        log.ranks = log.ranks or self.ranks
        log.batch_size = log.batch_size or self.batch_size


FORMAT = BatchBanner
