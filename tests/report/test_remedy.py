"""What a report says of its remedy probe."""

from __future__ import annotations

from pathlib import Path

from perfproof.core.files import write_record
from perfproof.report.remedy import read_remedy, remedy, remedy_sentence
from perfproof.schema.base import Reason
from perfproof.schema.loop import ProbeChoice
from tests.levers.play import World, confirmed, explore, failed, spec

CHOICE = ProbeChoice(lever="a", claim="TR-001", pairs=4, why="claim TR-001 names it")
NOTHING = ProbeChoice(
    lever=None,
    claim=None,
    pairs=0,
    why="no verified claim names a lever",
    reasons={"lever": Reason.NOT_APPLICABLE, "claim": Reason.NOT_APPLICABLE},
)


def test_not_asked_for(tmp_path: Path) -> None:
    assert read_remedy([]) is None


def test_nothing_to_try(tmp_path: Path) -> None:
    write_record(tmp_path / "choice.json", NOTHING)
    found = read_remedy([tmp_path / "choice.json"])
    assert found is not None
    assert found.effect is None
    assert remedy_sentence(found) == ("No remedy was tried: no verified claim names a lever.")


def test_a_gain_with_its_interval(tmp_path: Path) -> None:
    world = World({"a": 0.1})
    last = confirmed(explore(spec("a"), world.run)[-1], world.run)[-1]
    write_record(tmp_path / "choice.json", CHOICE)
    write_record(tmp_path / "8.json", last)
    found = read_remedy([tmp_path / "choice.json", tmp_path / "8.json"])
    assert found is not None
    said = remedy_sentence(found)
    assert "samples a second +1" in said
    assert "no difference" not in said


def test_an_interval_around_zero_shows_no_difference() -> None:
    world = World({"a": 0.1}, seed=2)
    last = confirmed(explore(spec("a"), world.run)[-1], World().run)[-1]
    assert "no difference was shown" in remedy_sentence(remedy(CHOICE, last))


def test_a_probe_that_failed_says_why() -> None:
    last = confirmed(explore(spec("a"), World({"a": 0.1}).run)[-1], failed)[-1]
    found = remedy(CHOICE, last)
    assert found.reasons["effect"] is Reason.TOO_FEW_VALUES
    assert "python_exception" in remedy_sentence(found)
