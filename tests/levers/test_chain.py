"""Which files a loop's rules want: where a chain ends, and where its runs are placed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from perfproof.core.dag import Plan
from perfproof.core.errors import InputError
from perfproof.core.files import write_record
from perfproof.levers.chain import Chain
from perfproof.levers.define import define
from perfproof.levers.policy import begin
from perfproof.schema.loop import LoopState
from tests.levers.play import World, lost, play
from tests.workflow.tree import copy_repository

LEVERS = ["num_workers_2", "null_unread_variable"]
FOLDER = Path("results/orbit2/loops/mine")


@pytest.fixture
def tree(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = copy_repository(root, tmp_path / "clone")
    site = yaml.safe_load((copy / "config/clusters/local.yaml").read_text())
    two = site | {"cluster": "two", "launcher": "srun"}
    (copy / "config/clusters/two.yaml").write_text(yaml.safe_dump(two))
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def chain(tree: Path) -> Callable[..., Chain]:
    def make(**settings: Any) -> Chain:
        chosen = {"model": "orbit2", "loop": "mine", "levers": LEVERS, **settings}
        plan = Plan(chosen, tree, 2)
        return Chain(plan, lambda m, n, c, s: f"results/{m}/loops/{n}/{c}/{s}.json", lambda _: "")

    return make


def steps(tree: Path, world: World | None = None, **settings: Any) -> list[LoopState]:
    """The steps of a played loop, written where the rules expect them."""
    chosen = {"model": "orbit2", "loop": "mine", "levers": LEVERS, **settings}
    defined = define(tree, Plan(chosen, tree, 2).settings)
    states = play(begin(defined), (world or World()).run)
    for state in states:
        write_record(tree / FOLDER / "steps" / f"{state.step}.json", state)
    return states


def wildcards(**values: object) -> Any:
    return SimpleNamespace(model="orbit2", loop="mine", **values)


def test_a_loop_that_stops_by_itself_is_complete(tree: Path, chain: Callable[..., Chain]) -> None:
    states = steps(tree)
    ending = chain(budget=1000).ending("orbit2", "mine")
    assert ending.label == "complete"
    assert ending.last == str(FOLDER / "steps" / f"{len(states) - 1}.json")
    assert chain(budget=1000).target(None) == str(FOLDER / "complete" / "story.md")


@pytest.mark.parametrize("budget", [9, 12, 14])
def test_a_budget_keeps_back_the_confirmation(
    tree: Path, chain: Callable[..., Chain], budget: int
) -> None:
    steps(tree)
    ending = chain(budget=budget).ending("orbit2", "mine")
    assert ending.label == f"runs-{budget}"
    # Four pairs of the confirmation are eight runs.
    assert ending.last.endswith(f"/steps/{budget - 8}.json")


def test_node_hours_keep_it_back_too(tree: Path, chain: Callable[..., Chain]) -> None:
    steps(tree)
    # A played run takes a tenth of a node-hour: nine more than those made must fit.
    ending = chain(budget=1000, node_hours=1.25).ending("orbit2", "mine")
    assert ending.label == "hours-1.25"
    assert ending.last.endswith("/steps/4.json")


def test_stop_ends_at_the_newest_step(tree: Path, chain: Callable[..., Chain]) -> None:
    steps(tree)
    for later in (tree / FOLDER / "steps").glob("*.json"):
        if int(later.stem) > 6:
            later.unlink()
    (tree / FOLDER / "STOP").touch()
    ending = chain(budget=1000).ending("orbit2", "mine")
    assert (ending.label, Path(ending.last).stem) == ("stopped-6", "6")
    inputs = chain(budget=1000).report_inputs(wildcards(ending="stopped-6"))
    assert "confirmation" not in inputs


def test_a_step_wants_the_run_that_the_last_one_asked_for(
    tree: Path, chain: Callable[..., Chain]
) -> None:
    states = steps(tree)
    made = chain()
    first = made.step_inputs(wildcards(chain="steps", s="0"))
    assert first == {"previous": str(FOLDER / "loop.json")}
    run = "results/orbit2/trials/baseline/nodes-1/rep-0"
    second = made.step_inputs(wildcards(chain="steps", s="1"))
    # The first baseline's claims order the levers.
    claims = [f"{run}/verified/trace.json", f"{run}/verified/telemetry.json"]
    assert second["run"] == [f"{run}/foms.json", *claims]
    (asked,) = states[11].action.measure
    later = made.step_inputs(wildcards(chain="steps", s="12"))
    assert later["run"] == [
        f"results/orbit2/trials/{asked.trial}/nodes-1/rep-{asked.rep}/foms.json"
    ]


def test_a_run_of_the_loop_asks_for_the_nodes_it_began_on(
    tree: Path, chain: Callable[..., Chain]
) -> None:
    states = steps(tree, cluster="two")
    for later in (tree / FOLDER / "steps").glob("*.json"):
        if int(later.stem) > 3:
            later.unlink()
    (asked,) = states[3].action.measure
    pinned = chain(cluster="two")
    this = wildcards(trial=asked.trial, rep=str(asked.rep))
    assert pinned.pin(this) == "--nodelist=n1"
    # Not another's run, not where it was switched off, not after a fault that may be the nodes'.
    assert pinned.pin(wildcards(trial=asked.trial, rep="99")) == ""
    off = {"decision": {"pin_nodes": False}}
    assert chain(cluster="two", **off, loop="other").pin(this) == ""
    hung = play(states[3], lambda run: lost(run, "hang"))[1]
    write_record(tree / FOLDER / "steps" / "4.json", hung)
    (again,) = hung.action.measure
    assert pinned.pin(wildcards(trial=again.trial, rep=str(again.rep))) == ""


def test_the_name_of_another_definition_is_refused_before_anything_is_planned(
    tree: Path, chain: Callable[..., Chain]
) -> None:
    steps(tree)
    with pytest.raises(InputError, match=r"other decision.*--config loop"):
        chain(decision={"power": 0.9}).target(None)
