"""What the limit rules look at."""

from __future__ import annotations

from dataclasses import dataclass

from perfproof.schema.foms import Foms
from perfproof.schema.report import RunCard
from perfproof.schema.telemetry import TelemetrySummary
from perfproof.schema.traces import RankTrace, TraceSummary

FEW_STEPS = 10


@dataclass(frozen=True)
class Facts:
    """What the rules look at."""

    card: RunCard
    foms: Foms
    traces: TraceSummary
    telemetry: TelemetrySummary
    profiled_step_s: float | None
    record_shapes: bool | None

    @property
    def device_ranks(self) -> list[RankTrace]:
        """The ranks whose trace has a device timeline."""
        return [rank for rank in self.traces.ranks if rank.gpu_events]

    @property
    def has_samples(self) -> bool:
        """Whether telemetry saw the steady steps."""
        return any(gpu.samples for gpu in self.telemetry.gpus)

    @property
    def world_size(self) -> int:
        """Number of ranks of the run, as far as anything tells; 0 when nothing does."""
        worlds = (rank.world_size or 0 for rank in self.traces.ranks)
        return max(self.card.ranks or 0, *worlds, 0)


def window_is_steps(rank: RankTrace) -> bool:
    """Whether the analysed window spans marked steps, so that its shares are of step time."""
    return bool(rank.steps) and rank.window_kind in {"steps", "cpu_span"}
