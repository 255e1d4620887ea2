"""Which remedy is probed: at most one, of a verified claim, within five minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.levers.policy import begin
from perfproof.levers.probe import choose, probe_spec
from perfproof.schema.claims import Verdict
from perfproof.schema.config import Settings
from perfproof.schema.loop import ProbeChoice
from tests.levers.play import World, candidate, play, result, spec
from tests.report.conftest import make_claim


def claim(name: str, share: float, *levers: str, verdict: Verdict = Verdict.VERIFIED) -> object:
    return make_claim(name, share, levers=list(levers), verdict=verdict)


LOOP = spec("a", "b", candidate("model", changes_model=True), candidate("off", not_eligible="no"))


def chosen(*claims: object, run_s: float | None = 20.0, **ineligible: str) -> ProbeChoice:
    return choose(claims, LOOP, ineligible, run_s)  # type: ignore[arg-type]


def test_the_largest_verified_claim_with_a_lever_that_may_be_tried() -> None:
    small, large = claim("TR-001", 0.1, "a"), claim("TR-002", 0.3, "off", "b")
    refuted = claim("TR-003", 0.9, "a", verdict=Verdict.REFUTED)
    found = chosen(small, large, refuted, claim("TR-004", 0.8), claim("TR-005", 0.7, "model"))
    assert (found.lever, found.claim, found.pairs) == ("b", "TR-002", 4)
    assert chosen(small, large, b="blocked here").lever == "a"


@pytest.mark.parametrize(("run_s", "pairs"), [(5.0, 4), (40.0, 3), (60.0, 2), (66.0, 0)])
def test_it_fits_five_minutes_or_is_not_done(run_s: float, pairs: int) -> None:
    found = chosen(claim("TR-001", 0.1, "a"), run_s=run_s)
    assert found.pairs == pairs
    assert (found.lever is None) == (pairs == 0)
    assert 2 * found.pairs * run_s <= 300


def test_why_nothing_is_probed() -> None:
    assert "no verified claim" in chosen(claim("TR-001", 0.1, "off")).why
    assert "duration" in chosen(claim("TR-001", 0.1, "a"), run_s=None).why


def test_a_probe_is_pairs_on_one_node_and_nothing_else(root: Path) -> None:
    choice = ProbeChoice(lever="bf16", claim="TR-001", pairs=2, why="")
    settings = Settings(model="orbit2", nodes=1, repetition=3)
    defined = probe_spec(root, settings, choice)
    assert defined.nodes == 1
    states = play(begin(defined), World({"bf16": 0.5}).run)
    asked = [(m.trial, m.rep) for state in states for m in state.action.measure]
    # Not the repetition that was reported: that run is what the remedy was found on.
    assert asked == [("bf16", 4), ("baseline", 4), ("baseline", 5), ("bf16", 5)]
    gain = states[-1].confirmation
    assert gain is not None
    assert gain.effect == pytest.approx(0.65, abs=0.1)


def test_a_remedy_that_took_no_effect_gives_no_figure(root: Path) -> None:
    choice = ProbeChoice(lever="bf16", claim="TR-001", pairs=2, why="")
    defined = probe_spec(root, Settings(model="orbit2"), choice)
    unseen = {"lever": "bf16", "seen": False, "what": "dtype float32"}
    end = play(begin(defined), lambda asked: result(asked, proof=[unseen]))[-1]
    assert end.confirmation is None
    assert "did not take effect" in end.action.why


def test_no_choice_is_no_loop(root: Path) -> None:
    with pytest.raises(InputError, match="no lever"):
        probe_spec(root, Settings(model="orbit2"), chosen())
