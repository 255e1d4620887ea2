"""What each run was for, from the last step's file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.levers import policy
from perfproof.levers.story.record import Loop, read_loop, rows
from perfproof.schema.loop import LoopState, Result
from tests.levers.story.conftest import RICH
from tests.levers.story.loops import Truth, play, result, spec, write_steps


def _truly(states: list[LoopState]) -> list[tuple[str, str | None]]:
    """Role and lever of each run, from the state that asked for it."""
    found: list[tuple[str, str | None]] = []
    for state in states[:-1]:
        (asked,) = state.action.measure
        if state.phase != "levers":
            found.append(("baseline", None))
        else:
            role = "best" if asked.trial == state.best else "candidate"
            found.append((role, state.current))
    return found


@pytest.mark.parametrize("steps", [0, 2, 5, 6, 8, 9, 12, 20, 10_000])
def test_rows_are_what_the_states_asked_for(rich_spec: Any, steps: int) -> None:
    explored, confirmed = play(RICH, rich_spec, steps)
    made = rows(Loop(explored[-1], confirmed[-1], "complete"))
    count = len(explored) - 1
    assert [(row.role, row.lever) for row in made[:count]] == _truly(explored)
    assert {row.role for row in made[count:]} <= {"confirmation"}
    assert [row.index for row in made] == list(range(len(confirmed[-1].results)))


def test_runs_lost_at_the_end_belong_to_the_lever_under_test() -> None:
    def twist(state: LoopState, asked: Any) -> dict[str, Any]:
        lost = {"ending": "infrastructure", "cause": "gone", "value": None}
        return lost if len(state.results) > 6 else {}

    truth = Truth({"a": 0.0}, twist=twist)
    explored, confirmed = play(truth, spec(truth))
    assert explored[-1].action.kind == "stop"
    made = rows(Loop(explored[-1], confirmed[-1], "complete"))
    assert [(row.role, row.lever) for row in made] == _truly(explored)


def test_a_confirmation_of_another_loop_is_refused(tmp_path: Path, rich_spec: Any) -> None:
    explored, confirmed = play(RICH, rich_spec)
    other = Truth({"a": 0.2})
    write_steps(explored, tmp_path / "steps")
    write_steps(confirmed, tmp_path / "confirm")
    write_steps(play(other, spec(other))[1], tmp_path / "other")
    last = tmp_path / "steps" / f"{explored[-1].step}.json"
    right = tmp_path / "confirm" / f"{confirmed[-1].step}.json"
    assert read_loop(last, right, "complete").confirmed == confirmed[-1]
    with pytest.raises(InputError, match="another loop"):
        read_loop(last, tmp_path / "other" / "0.json", "complete")
    with pytest.raises(InputError, match="another loop"):
        read_loop(tmp_path / "steps" / "3.json", right, "complete")


def test_path_is_that_of_the_best(rich: Loop) -> None:
    assert rich.path()[0] == "baseline"
    assert rich.path()[-1] == rich.explored.best == "bf16"


def test_helper_world_is_deterministic(rich_spec: Any) -> None:
    state = policy.begin(rich_spec)
    (asked,) = state.action.measure
    one, two = (result(RICH, state, asked) for _ in range(2))
    assert isinstance(one, Result)
    assert one == two
