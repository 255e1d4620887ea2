"""Which loop a replay is of, and what of the settings makes another policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import write_record
from perfproof.levers.recorded import options, other_decision, recorded
from perfproof.schema.config import Settings
from perfproof.schema.decision import Decision
from tests.levers.play import World, confirmed, explore, spec


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A loop with two confirmations, of which the first was cut off."""
    world = World({"a": 0.1})
    states = explore(spec("a"), world.run)
    folder = tmp_path / "results" / "orbit2" / "loops" / "mine"
    for state in states:
        write_record(folder / "steps" / f"{state.step}.json", state)
    for state in confirmed(states[-1], world.run):
        write_record(folder / "complete" / "confirm" / f"{state.step}.json", state)
        if state.step == 0:
            write_record(folder / "runs-20" / "confirm" / "0.json", state)
    return tmp_path / "results"


def test_a_loop_is_named_or_its_directory_is(results: Path) -> None:
    by_name = recorded(Settings(model="orbit2", loop="mine"), results)
    assert by_name.confirm == by_name.loop / "complete" / "confirm"
    by_path = recorded(Settings(loop=str(by_name.loop)), results)
    assert by_path == by_name


@pytest.mark.parametrize("name", ["auto", "yours", "/nowhere"])
def test_what_is_no_loop_is_said(results: Path, name: str) -> None:
    with pytest.raises(InputError, match="no steps"):
        recorded(Settings(model="orbit2", loop=name), results)


def test_only_what_differs_from_the_defaults_is_another_policy() -> None:
    assert json.loads(other_decision(Settings())) == {}
    changed = Settings(decision=Decision(power=0.9))
    assert json.loads(other_decision(changed)) == {"power": 0.9}


def test_each_policy_has_an_output_of_its_own(results: Path) -> None:
    plain = Settings(model="orbit2", loop="mine")
    other = plain.model_copy(update={"decision": Decision(power=0.9)})
    some = plain.model_copy(update={"levers": ["a"]})
    names = {options(settings, results)["name"] for settings in (plain, other, some)}
    assert len(names) == 3
    assert options(some, results)["only"] == "--only a"
