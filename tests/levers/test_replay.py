"""Replay: the recorded policy gives the recorded bytes; another one says which runs it lacks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.levers.replay import (
    NOT_ASKED,
    another,
    as_observed,
    changed,
    replay,
    steps_of,
    text,
    told,
)
from perfproof.levers.story.record import Loop, read_loop
from perfproof.levers.story.write import write_all
from perfproof.schema.decisions import Replay
from perfproof.schema.loop import Decision, LoopState
from tests.levers.story.conftest import RICH
from tests.levers.story.loops import Truth, play, result, spec, write_steps


def _moving(state: LoopState, asked: Any) -> dict[str, Any]:
    """Runs come on other nodes from time to time, and some are lost."""
    place = len(state.results)
    nodes = ["node-b"] if 6 <= place < 14 or place in (2, 25) else ["node-a"]
    against = next((r for r in state.results if r.measurement == state.action.against), None)
    fields: dict[str, Any] = {"node_list": nodes}
    if place == 9:
        return {**fields, "ending": "infrastructure", "cause": "lost", "value": None}
    if against is not None and against.node_list != nodes:
        fields["differs"] = [f"node_list: a {against.node_list}, b {nodes}"]
    if "odd" in asked.trial:
        fields["differs"] = [*fields.get("differs", []), "dtype: a x, b y"]
    return fields


TRUTHS = [
    RICH,
    Truth({"a": 0.2, "b": 0.1, "odd": 0.0, "c": -0.1}, seed=1, twist=_moving),
    Truth({"a": 0.0, "b": 0.02}, sd=0.1, seed=2),
    Truth({"a": 0.0}, twist=lambda s, a: {"ending": "failed", "cause": "oom", "value": None}),
    Truth({"a": 0.0}, twist=lambda s, a: {"differs": ["ranks: a 1, b 2"]} if s.results else {}),
]


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("steps", [0, 4, 10, 17, 10_000])
def test_the_recorded_policy_gives_every_step_byte_for_byte(truth: Truth, steps: int) -> None:
    explored, confirmed = play(truth, spec(truth), steps)
    # Only the last steps are read, from their bytes.
    last, later = (LoopState.model_validate_json(text(x[-1])) for x in (explored, confirmed))
    again, then = replay(Loop(last, later, "x"), last.spec.decision)
    assert [text(state) for state in again.states] == [text(state) for state in explored]
    assert then is not None
    assert [text(state) for state in then.states] == [text(state) for state in confirmed]
    assert again.missing is then.missing is None


def test_moved_nodes_are_among_what_is_replayed() -> None:
    explored, _ = play(TRUTHS[1], spec(TRUTHS[1]))
    told_of = [event for state in explored for event in state.events]
    assert sum(event.startswith("NODES_CHANGED") for event in told_of) >= 2


def test_a_stricter_policy_says_which_run_it_lacks() -> None:
    truth = Truth({"a": 0.2, "b": -0.2})
    explored, confirmed = play(truth, spec(truth))
    recorded = Loop(explored[-1], confirmed[-1], "complete")
    decision = Decision(baseline_runs=30)
    again, then = replay(recorded, decision)
    assert then is None
    assert again.missing is not None
    known = {r.measurement.rep for r in confirmed[-1].results if r.measurement.trial == "baseline"}
    assert (again.missing.trial, again.missing.rep) == ("baseline", len(known))
    assert again.missing.chain == "steps"
    assert again.missing.step == again.last.step == len(known)
    # Runs of the confirmation are recorded runs too.
    assert len(again.last.results) > sum(
        r.measurement.trial == "baseline" for r in explored[-1].results
    )
    found = told(recorded, again, then, None)
    assert not found.same_policy
    assert found.used == len(known)
    assert {m.trial for m in found.unused} == {"a", "a+b"}


def test_another_rule_decides_otherwise_on_the_same_runs() -> None:
    truth = Truth({"a": 0.1, "b": -0.3})
    explored, confirmed = play(truth, spec(truth))
    assert explored[-1].best == "a"
    recorded = Loop(explored[-1], confirmed[-1], "complete")
    again, _ = replay(recorded, Decision(minimum_effect=0.5))
    found = told(recorded, again, None, None)
    by_lever = {compared.lever: compared for compared in found.levers}
    assert by_lever["a"].recorded == "accepted"
    assert by_lever["a"].replayed != "accepted"
    assert not by_lever["a"].same


def test_more_confirmation_pairs_lack_runs_of_the_confirmation() -> None:
    truth = Truth({"a": 0.2})
    explored, confirmed = play(truth, spec(truth))
    recorded = Loop(explored[-1], confirmed[-1], "complete")
    again, then = replay(recorded, Decision(confirmation_pairs=6))
    assert again.missing is None
    assert then is not None
    assert then.missing is not None
    assert then.missing.chain == "confirm"
    assert then.missing.step == 8


def test_a_loop_with_fewer_levers() -> None:
    truth = Truth({"a": 0.2, "b": -0.3})
    explored, confirmed = play(truth, spec(truth))
    again, _ = replay(Loop(explored[-1], confirmed[-1], "x"), Decision(), ["a"])
    by_id = {record.id: record for record in again.last.levers}
    assert (by_id["b"].status, by_id["b"].why) == ("not_eligible", NOT_ASKED)
    assert by_id["a"].status == "accepted"
    with pytest.raises(InputError, match="unknown lever 'aa'"):
        another(explored[-1].spec, Decision(), ["aa"])


def test_nodes_are_held_against_the_run_that_this_policy_names() -> None:
    truth = Truth({"a": 0.0})
    state = play(truth, spec(truth), 1)[0][-1]
    (asked,) = state.action.measure
    here = result(truth, state, asked)
    there = here.model_copy(update={"node_list": ["node-b"]})
    assert as_observed(there, here).differs == ["node_list: a node-a, b node-b"]
    stale = here.model_copy(update={"differs": ["node_list: a x, b node-a", "dtype: a x, b y"]})
    assert as_observed(stale, here).differs == ["dtype: a x, b y"]
    lost = there.model_copy(update={"ending": "infrastructure"})
    assert as_observed(lost, here).differs == []


def test_keys_of_a_decision() -> None:
    recorded = Decision(baseline_runs=7)
    found = changed(recorded, '{"minimum_effect": 0.1}')
    assert (found.baseline_runs, found.minimum_effect) == (7, 0.1)
    with pytest.raises(InputError, match="--decision: powr"):
        changed(recorded, '{"powr": 0.9}')
    with pytest.raises(InputError, match="--decision"):
        changed(recorded, "[")


def test_step_files_in_order(tmp_path: Path) -> None:
    for name in ("0.json", "10.json", "9.json", "x.json"):
        (tmp_path / "steps").mkdir(exist_ok=True)
        (tmp_path / "steps" / name).touch()
    assert [path.stem for path in steps_of(tmp_path)] == ["0", "9", "10"]
    assert steps_of(tmp_path / "steps") == steps_of(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no step file"):
        steps_of(tmp_path / "empty")


def _replay(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfproof.levers.replay", *arguments]
    environment = {"PYTHONPATH": str(root / "scripts"), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_command_line(root: Path, tmp_path: Path) -> None:
    explored, confirmed = play(RICH, spec(RICH))
    write_steps(explored, tmp_path / "steps")
    write_steps(confirmed, tmp_path / "complete" / "confirm")
    where = ["--loop", str(tmp_path), "--confirm", str(tmp_path / "complete" / "confirm")]
    same = _replay(root, *where, "--out-dir", str(tmp_path / "same"))
    assert same.returncode == 0, same.stderr
    found = read_record(tmp_path / "same" / "replay.json", Replay)
    assert found.same_policy
    assert found.differing_step is None
    assert (found.missing, found.unused) == ([], [])
    assert all(compared.same for compared in found.levers)
    recorded = Loop(explored[-1], confirmed[-1], "replayed")
    write_all(recorded, tmp_path / "written")
    for path in sorted((tmp_path / "written").iterdir()):
        assert (tmp_path / "same" / path.name).read_bytes() == path.read_bytes()
    rule = json.dumps({"baseline_runs": 40})
    other = _replay(root, *where, "--decision", rule, "--out-dir", str(tmp_path / "other"))
    assert other.returncode == 0, other.stderr
    assert "needs baseline rep" in other.stdout.splitlines()[-1]
    lacking = read_record(tmp_path / "other" / "replay.json", Replay)
    assert lacking.differing_step == "steps/0.json"
    assert len(lacking.missing) == 1
    story = (tmp_path / "other" / "story.md").read_text()
    assert "a run that was asked for does not exist" in story


def test_a_confirmation_before_a_raised_budget(root: Path, tmp_path: Path) -> None:
    """Exploring went on after it; the replay ends where the confirmation began."""
    truth = Truth({"a": 0.3, "b": -0.3, "c": -0.2})
    whole, _ = play(truth, spec(truth))
    steps = next(state.step for state in whole if state.best == "a")
    _, confirmed = play(truth, spec(truth), steps)
    assert steps < whole[-1].step
    write_steps(whole, tmp_path / "steps")
    write_steps(confirmed, tmp_path / "runs-20" / "confirm")
    where = ["--loop", str(tmp_path), "--confirm", str(tmp_path / "runs-20" / "confirm")]
    done = _replay(root, *where, "--out-dir", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout
    found = read_record(tmp_path / "out" / "replay.json", Replay)
    assert (found.steps, found.recorded_steps) == (steps, steps)
    assert found.differing_step is None
    assert found.missing == []


def test_a_changed_step_file_is_found(root: Path, tmp_path: Path) -> None:
    truth = Truth({"a": -0.3})
    explored, _ = play(truth, spec(truth))
    write_steps(explored, tmp_path / "steps")
    third = tmp_path / "steps" / "3.json"
    third.write_text(third.read_text().replace("repetition 4", "repetition 5"))
    done = _replay(root, "--loop", str(tmp_path), "--out-dir", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert read_record(tmp_path / "out" / "replay.json", Replay).differing_step == "steps/3.json"
    loop = read_loop(tmp_path / "steps" / f"{explored[-1].step}.json", None, "x")
    assert loop.confirmed is None
