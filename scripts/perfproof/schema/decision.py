"""How sure a decision of the optimizer loop must be, and the noise it must be sure against."""

from __future__ import annotations

from pydantic import Field

from perfproof.schema.base import Strict


class Decision(Strict):
    """How sure a decision must be, and what it may cost (`decision:` in the configuration)."""

    false_accept_per_loop: float = Field(
        0.01, gt=0, lt=0.5, description="probability that a loop accepts any lever without effect"
    )
    power: float = Field(
        0.95, gt=0.5, lt=1, description="probability that an effect of the detectable size is found"
    )
    minimum_effect: float = Field(
        0.02, gt=0, lt=1, description="smallest relative gain worth having"
    )
    baseline_runs: int = Field(
        14, ge=3, description="runs of the baseline before the first lever (they give the noise)"
    )
    max_runs_per_lever: int = Field(
        12, ge=4, description="runs that one lever may cost, those of the best among them"
    )
    confirmation_pairs: int = Field(
        4, ge=2, description="fresh pairs of the best and the baseline at the end"
    )
    loss_tolerance: float = Field(
        0.02, ge=0, description="how far the final loss may lie above the baseline's own band"
    )
    loss_tolerance_numerics: float = Field(
        0.05, ge=0, description="the same for levers that change rounding"
    )
    pin_nodes: bool = Field(True, description="ask SLURM for the nodes of the first run again")


class Noise(Strict):
    """Spread of one run: standard deviation of the logarithm of the primary figure."""

    sd: float = Field(gt=0, description="of ln(figure), one run; 0.01 is 1 %")
    df: float = Field(gt=0, description="degrees of freedom behind it")
    source: str = Field(description="where it is from")
