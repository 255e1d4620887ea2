"""What defines a loop, and what keeps a lever out of it before anything ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import write_record
from perfproof.levers.define import check_unchanged, define, loop_id
from perfproof.levers.policy import begin
from perfproof.levers.recorded import defining
from perfproof.schema.config import Settings
from perfproof.schema.decision import Decision
from tests.workflow.chain import run_step


def why(root: Path, **settings: object) -> dict[str, str | None]:
    spec = define(root, Settings.model_validate({"model": "orbit2", **settings}))
    return {lever.id: lever.not_eligible for lever in spec.levers}


def test_the_name_follows_from_what_defines_the_loop_and_from_nothing_else(root: Path) -> None:
    def name(**settings: object) -> str:
        chosen = Settings.model_validate({"model": "orbit2", **settings})
        return loop_id(chosen, define(root, chosen))

    plain = name()
    assert name(budget=7, node_hours=1.5, preflight=False) == plain
    others = [
        name(levers=["bf16"]),
        name(trial="bf16"),
        name(decision=Decision(power=0.9)),
        name(cluster="h200"),
    ]
    assert len({plain, *others}) == 5
    assert name(loop="mine") == "mine"


def test_what_cannot_be_tried_says_why(root: Path) -> None:
    reasons = why(root)
    assert reasons["bf16"] is None
    assert "needs a GPU" in (reasons["tf32"] or "")
    assert "diagnostic" in (reasons["sdpa_math"] or "")
    assert why(root, levers=["sdpa_math"])["sdpa_math"] is None
    assert "not among" in (why(root, levers=["sdpa_math"])["bf16"] or "")


def test_a_loop_may_begin_with_levers(root: Path) -> None:
    spec = define(root, Settings(model="orbit2", trial="bf16"))
    reasons = {lever.id: lever.not_eligible for lever in spec.levers}
    assert "already" in (reasons["bf16"] or "")
    state = begin(spec)
    assert state.best == "bf16"
    assert state.action.measure[0].trial == "bf16"


def test_levers_that_set_the_same_key_conflict_in_both_directions(root: Path) -> None:
    by_id = {c.id: c for c in define(root, Settings(model="orbit2")).levers}
    assert "num_workers_4" in by_id["num_workers_2"].conflicts
    assert "num_workers_2" in by_id["num_workers_4"].conflicts
    assert all(c.id not in c.conflicts for c in by_id.values())


def test_an_unknown_lever_is_refused_with_the_nearest(root: Path) -> None:
    with pytest.raises(InputError, match="bf16"):
        define(root, Settings(model="orbit2", levers=["bf61"]))


def test_a_loop_is_not_continued_under_another_definition(root: Path, tmp_path: Path) -> None:
    settings = Settings(model="orbit2", loop="mine")
    first = tmp_path / "mine" / "steps" / "0.json"
    write_record(first, begin(define(root, settings)))
    check_unchanged(define(root, settings), first)
    other = settings.model_copy(update={"decision": Decision(power=0.9)})
    with pytest.raises(InputError, match=r"decision.*--config loop"):
        check_unchanged(define(root, other), first)
    out = tmp_path / "mine" / "loop.json"
    code, last = run_step(
        "levers.define", "--root", root, "--settings", defining(other), "--out", out
    )
    assert (code, out.exists()) == (1, False)
    assert "decision" in last


def test_budgets_are_no_part_of_the_definition() -> None:
    told = json.loads(defining(Settings(budget=5, node_hours=2.0)))
    assert not {"budget", "node_hours"} & told.keys()
