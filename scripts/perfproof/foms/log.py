"""What one log says: steps, progress bars, losses, memory, header."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from perfproof.foms.step_table import StepTable
from perfproof.schema.foms import StepTimeSource


@dataclass(frozen=True)
class BarEvent:
    """Start or end of a progress bar over an epoch, or the line that closes an epoch."""

    kind: Literal["start", "end", "epoch"]
    batches: int = 0
    seconds: float = 0.0
    epoch: int = 0
    rank: int = 0


@dataclass
class Log:
    """Everything that the formats found in one log."""

    tables: dict[StepTimeSource, StepTable] = field(default_factory=dict)
    bars: list[BarEvent] = field(default_factory=list)
    epoch_losses: dict[int, float] = field(default_factory=dict)
    non_finite: int = 0
    reserved_bytes: int | None = None
    ranks: int | None = None
    data_ranks: int | None = None
    rank_lines: Counter[int] = field(default_factory=lambda: Counter[int]())
    batch_size: int | None = None
    dtype: str | None = None
    profiled_epochs: set[int] = field(default_factory=set)
    formats: list[str] = field(default_factory=list)
    trainers: set[str] = field(default_factory=set)  # whose steps or epochs it holds
    faults: list[str] = field(default_factory=list)

    def add_table(self, source: StepTimeSource, table: StepTable) -> None:
        """Keep a table that has rows."""
        if len(table):
            self.tables[source] = table
            self.rank_lines.update(table.rank_lines)

    def add_reserved(self, reserved_bytes: float) -> None:
        """Raise the peak of reserved memory."""
        self.reserved_bytes = max(self.reserved_bytes or 0, round(reserved_bytes))

    def has_training(self) -> bool:
        """True when a step or the end of an epoch was seen."""
        ended = any(event.kind == "end" for event in self.bars)
        return bool(self.tables or self.epoch_losses or ended)
