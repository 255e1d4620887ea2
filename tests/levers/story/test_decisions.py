"""`decisions.json`: every decision with its evidence, the total gain, the costs."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from perfproof.core.files import canonical_json
from perfproof.levers.story.decisions import decisions, ending_words
from perfproof.levers.story.record import Loop
from perfproof.schema.base import Reason
from perfproof.schema.decisions import Decisions, LeverDecision, LeverStatus
from perfproof.schema.loop import Decision, LeverRecord, LoopState
from tests.levers.story.conftest import RICH
from tests.levers.story.loops import Truth, loop_of, play, spec


def _by_id(found: Decisions) -> dict[str, LeverDecision]:
    return {lever.id: lever for lever in found.levers}


def test_every_ending_is_told(rich: Loop) -> None:
    levers = _by_id(decisions(rich))
    assert {name: lever.status for name, lever in levers.items()} == {
        "bf16": "accepted",
        "wider": "not_comparable",
        "silent": "no_op",
        "slow": "rejected",
        "broken": "failed",
        "diverging": "loss",
        "null": levers["null"].status,
        "gpu_only": "not_eligible",
        "switch": "diagnosed",
    }
    assert levers["null"].status in ("rejected", "inconclusive")
    assert levers["gpu_only"].order is None
    assert levers["gpu_only"].reasons["effect"] is Reason.NOT_APPLICABLE
    assert levers["broken"].runs == 2 == len(levers["broken"].measured)


def test_tried_levers_come_first_in_order(rich: Loop) -> None:
    orders = [lever.order for lever in decisions(rich).levers]
    assert orders == [1, 2, 3, 4, 5, 6, 7, 8, None]


def test_total_gain_is_that_of_the_confirmation(rich: Loop) -> None:
    total = decisions(rich).confirmation
    assert total.outcome == "confirmed"
    assert (total.best_runs, total.baseline_runs) == (4, 4)
    assert total.effect == pytest.approx(0.3, abs=0.03)
    assert total.effect != _by_id(decisions(rich))["bf16"].effect
    assert total.effect is not None
    assert total.interval is not None
    assert total.interval[0] < total.effect < total.interval[1]


def test_costs_add_up(rich: Loop) -> None:
    *parts, total = decisions(rich).costs
    assert total.part == "total"
    assert total.runs == sum(part.runs for part in parts) == len(rich.last.results)
    assert total.node_hours == pytest.approx(sum(part.node_hours for part in parts))
    assert (total.failed, total.infrastructure, total.without_cost) == (2, 2, 2)


def test_without_a_gain_there_is_nothing_to_confirm(fruitless: Loop) -> None:
    found = decisions(fruitless)
    assert found.path == ["baseline"]
    assert found.confirmation.outcome == "nothing_to_confirm"
    assert found.confirmation.effect is None


def test_a_gain_that_is_gone_is_not_confirmed() -> None:
    def fades(state: LoopState, asked: Any) -> dict[str, Any]:
        lasting = state.phase != "confirm" or asked.trial == "baseline"
        return {} if lasting else {"value": 97.0 + len(state.results) % 3}

    truth = Truth({"a": 0.2}, twist=fades)
    total = decisions(loop_of(truth, spec(truth))).confirmation
    assert total.outcome == "not_confirmed"
    assert total.effect is not None
    assert total.effect < 0.02


def test_a_budget_leaves_the_total_unmeasured(rich_spec: Any) -> None:
    whole, _ = play(RICH, rich_spec)
    steps = next(s.step for s in whole if s.best == "bf16" and s.action.kind == "measure")
    explored, confirmed = play(RICH, rich_spec, steps)
    found = decisions(Loop(explored[-1], None, "stopped-24"))
    assert found.confirmation.outcome == "not_measured"
    assert found.ended_because.startswith("a STOP file was found after step 24; next would")
    later = decisions(Loop(explored[-1], confirmed[2], "runs-32"))
    assert later.confirmation.outcome == "not_measured"
    assert later.confirmation.best_runs == 1


@pytest.mark.parametrize("steps", range(0, 30, 3))
def test_every_step_gives_a_valid_record(rich_spec: Any, steps: int) -> None:
    explored, _ = play(RICH, rich_spec, steps)
    found = decisions(Loop(explored[-1], None, "stopped-1"))
    assert Decisions.model_validate_json(found.model_dump_json()) == found
    if steps < 5:
        assert found.noise is None
        assert found.reasons["noise"] is Reason.TOO_FEW_VALUES


def test_same_loop_same_bytes(rich: Loop, rich_spec: Any) -> None:
    again = loop_of(RICH, rich_spec)
    one, two = (canonical_json(decisions(x).model_dump(mode="json")) for x in (rich, again))
    assert one == two


def test_statuses_are_those_of_the_loop() -> None:
    assert get_args(LeverStatus) == get_args(LeverRecord.model_fields["status"].annotation)


def test_endings_in_words() -> None:
    assert ending_words("complete") == "complete"
    assert ending_words("runs-60") == "the budget of 60 runs was used"
    assert ending_words("hours-2.5") == "the budget of 2.5 node-hours was used"


def test_the_decision_rule_is_recorded() -> None:
    rule = Decision(baseline_runs=4, max_runs_per_lever=6)
    truth = Truth({"a": -0.3})
    assert decisions(loop_of(truth, spec(truth, rule))).spec.decision == rule
