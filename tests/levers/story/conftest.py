"""Loops that most tests look at."""

from __future__ import annotations

from typing import Any

import pytest

from perfproof.levers.story.record import Loop
from perfproof.schema.loop import LoopState, Measurement, ProofFinding
from tests.levers.story.loops import Truth, loop_of, spec

HOSTILE = "=cmd|' /C calc'!A0 <script>x</script> `a` | **b** [c](d)\nforged"


def mishaps(state: LoopState, asked: Measurement) -> dict[str, Any]:
    """What goes wrong in the rich loop: by the place of the run, by the lever."""
    levers = asked.trial.split("+")
    if len(state.results) in (3, 7):
        return {"ending": "infrastructure", "cause": f"node_fault: {HOSTILE}", "value": None}
    if "wider" in levers:
        return {"differs": ["realised_batches_per_rank: a 8, b 4"]}
    if "broken" in levers:
        cause = f"out of memory: {HOSTILE}"
        return {"ending": "failed", "cause": cause, "value": None, "node_hours": None}
    if "silent" in levers:
        return {"proof": [ProofFinding(lever="silent", seen=False, what=f"silent {HOSTILE}")]}
    if "diverging" in levers:
        return {"final_loss": 5.5}
    return {}


# Decided with true effects far apart, so that the seed does not matter.
RICH = Truth(
    effects={
        "bf16": 0.3,
        "wider": 0.5,
        "silent": 0.0,
        "slow": -0.2,
        "broken": 0.0,
        "diverging": 0.1,
        "null": 0.0,
        "gpu_only": 0.0,
        "switch": -0.3,
    },
    sd=0.01,
    seed=3,
    twist=mishaps,
)


@pytest.fixture(scope="session")
def rich_spec() -> Any:
    """The rich loop's definition."""
    return spec(
        RICH,
        bf16={"expected_low": 0.1, "expected_high": 0.5, "changes_numerics": True},
        gpu_only={"not_eligible": f"needs a GPU {HOSTILE}"},
        switch={"kind": "diagnostic", "discriminates": True},
    )


@pytest.fixture(scope="session")
def rich(rich_spec: Any) -> Loop:
    """A finished loop with every kind of ending."""
    return loop_of(RICH, rich_spec)


@pytest.fixture(scope="session")
def fruitless() -> Loop:
    """A finished loop that accepted nothing."""
    truth = Truth({"slow": -0.2, "slower": -0.4}, seed=1)
    return loop_of(truth, spec(truth))
