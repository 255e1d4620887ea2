"""The policy as a whole: order, verdicts, faults, endings."""

from __future__ import annotations

import pytest

from perfproof.levers.policy import advance, begin
from perfproof.schema.loop import Decision, LoopState, Measurement, ProofFinding, Result
from tests.levers.play import (
    World,
    candidate,
    confirmed,
    explore,
    failed,
    lost,
    result,
    spec,
    statuses,
)

BASELINE_RUNS = Decision().baseline_runs


def trials(states: list[LoopState]) -> list[str]:
    return [m.trial for state in states for m in state.action.measure]


def test_a_winner_is_accepted_and_a_null_is_not() -> None:
    world = World({"good": 0.06})
    states = explore(spec("good", "null"), world.run)
    end = states[-1]
    assert statuses(end) == {"good": "accepted", "null": "rejected"}
    assert end.best == "good"
    assert trials(states)[:BASELINE_RUNS] == ["baseline"] * BASELINE_RUNS
    # After the accept the next lever is tried on top of the best.
    assert any(trial == "good+null" for trial in trials(states))
    assert end.action.why == "no lever is left that could pay"


def test_every_step_round_trips_and_repetitions_are_never_reused() -> None:
    states = explore(spec("a", "b", "c"), World({"a": 0.05, "b": -0.2}).run)
    for state in states:
        assert LoopState.model_validate_json(state.model_dump_json(by_alias=True)) == state
    asked = [(m.trial, m.rep) for state in states for m in state.action.measure]
    assert len(asked) == len(set(asked))
    assert [state.step for state in states] == list(range(len(states)))


def test_the_policy_is_a_function() -> None:
    state = begin(spec("a"))
    answer = result(state.action.measure[0], 101.0)
    assert advance(state, answer) == advance(state, answer)


def test_a_result_that_was_not_asked_for_is_refused() -> None:
    state = begin(spec("a"))
    with pytest.raises(ValueError, match="was not asked for"):
        advance(state, result(Measurement(trial="a", rep=0)))


def test_noise_and_what_can_be_seen_are_said_before_any_lever() -> None:
    for sd, low, high in ((0.01, 0.01, 0.05), (0.18, 0.25, 1.5)):
        states = explore(spec("a", "b"), World(sd=sd, seed=3).run)
        first = next(state for state in states if state.phase == "levers")
        assert first.step == BASELINE_RUNS
        assert first.noise is not None
        assert first.detectable is not None
        assert first.noise.sd == pytest.approx(sd, rel=0.9)
        assert low < first.detectable < high
        assert any(event.startswith("BASELINE_DONE") for event in first.events)


def test_a_hopeless_lever_costs_two_runs() -> None:
    end = explore(spec("bad"), World({"bad": -0.3}).run)[-1]
    assert statuses(end) == {"bad": "rejected"}
    assert end.levers[0].runs == 2


@pytest.mark.parametrize("seen", [False, None])
def test_without_proof_of_effect_a_lever_is_a_no_op(seen: bool | None) -> None:
    unseen = ProofFinding(lever="a", seen=seen, what="dtype float32")

    def answer(asked: Measurement) -> Result:
        return result(asked, 150.0, proof=[] if asked.trial == "baseline" else [unseen])

    end = explore(spec("a"), answer)[-1]
    assert statuses(end) == {"a": "no_op"}
    assert end.levers[0].runs == 1
    assert end.best == "baseline"


def test_what_differs_is_not_compared() -> None:
    """The phantom wins of more loader workers: +129 % and +80 % of nothing."""
    differs = ["realised_batches_per_rank: a 4096, b 1016,4096"]
    for phantom in (229.0, 180.0):

        def answer(asked: Measurement, value: float = phantom) -> Result:
            fine = asked.trial == "baseline"
            return result(asked, 100.0 if fine else value, differs=[] if fine else differs)

        end = explore(spec("num_workers_4"), answer)[-1]
        assert statuses(end) == {"num_workers_4": "not_comparable"}
        assert end.best == "baseline"


@pytest.mark.parametrize(
    ("loss", "non_finite", "status"),
    [(1.0, 0, "accepted"), (1.2, 0, "loss"), (None, 3, "loss"), (0.5, 0, "accepted")],
)
def test_a_bad_loss_is_no_win(loss: float | None, non_finite: int, status: str) -> None:
    world = World({"fast": 0.5})

    def answer(asked: Measurement) -> Result:
        run = world.run(asked)
        if asked.trial == "baseline":
            return run
        return result(asked, run.value, final_loss=loss, non_finite_count=non_finite)

    assert statuses(explore(spec("fast"), answer)[-1]) == {"fast": status}


def test_numerics_have_a_wider_band() -> None:
    world = World({"bf16": 0.5})

    def answer(asked: Measurement) -> Result:
        run = world.run(asked)
        return result(asked, run.value, final_loss=1.0 if asked.trial == "baseline" else 1.04)

    for numerics, status in ((True, "accepted"), (False, "loss")):
        lever = candidate("bf16", changes_numerics=numerics)
        assert statuses(explore(spec(lever), answer)[-1]) == {"bf16": status}


def test_a_lever_that_changes_the_model_is_never_accepted() -> None:
    end = explore(spec(candidate("pad", changes_model=True)), World({"pad": 0.3}).run)[-1]
    assert statuses(end) == {"pad": "diagnosed"}
    assert end.best == "baseline"
    assert "changes the model" in end.levers[0].why


def test_infrastructure_costs_a_lever_nothing() -> None:
    world, spoiled = World({"a": 0.06}), []

    def answer(asked: Measurement) -> Result:
        if asked.trial == "a" and not spoiled:
            spoiled.append(asked)
            return lost(asked)
        return world.run(asked)

    end = explore(spec("a"), answer)[-1]
    assert statuses(end) == {"a": "accepted"}
    assert end.levers[0].failures == 0


def test_three_infrastructure_faults_in_a_row_end_the_loop() -> None:
    states = explore(spec("a"), lost)
    assert len(states) == 4
    assert "for no fault of theirs" in states[-1].action.why


def test_the_same_failure_twice_bans_a_lever() -> None:
    world = World()

    def answer(asked: Measurement) -> Result:
        return failed(asked, "device_memory") if asked.trial == "big" else world.run(asked)

    end = explore(spec("big", "other"), answer)[-1]
    assert statuses(end) == {"big": "failed", "other": "rejected"}
    assert (end.levers[0].failures, end.levers[0].runs) == (2, 2)
    assert "device_memory" in end.levers[0].why


def test_a_failing_baseline_ends_the_loop() -> None:
    states = explore(spec("a"), failed)
    assert len(states) == 3
    assert states[-1].action.why == "the baseline fails: python_exception"


def test_a_baseline_that_differs_from_itself_ends_the_loop() -> None:
    def answer(asked: Measurement) -> Result:
        return result(asked, differs=["dtype: a float32, b bfloat16"] if asked.rep else [])

    assert "differ" in explore(spec("a"), answer)[-1].action.why


def test_other_nodes_start_the_evidence_anew() -> None:
    world = World({"a": 0.06})

    def answer(asked: Measurement) -> Result:
        run = world.run(asked)
        moved = asked.trial == "a" and asked.rep == 0
        differs = ["node_list: a n1, b n2"] if moved else []
        return run.model_copy(update={"differs": differs, "node_list": ["n2"]})

    states = explore(spec("a"), answer)
    assert any(event.startswith("NODES_CHANGED") for s in states for event in s.events)
    assert statuses(states[-1]) == {"a": "accepted"}
    # The run that landed elsewhere has nothing to be held against: the best goes there first.
    assert states[-1].nodes_since == BASELINE_RUNS + 1
    assert trials(states)[BASELINE_RUNS : BASELINE_RUNS + 3] == ["a", "baseline", "a"]


def test_drift_of_the_best_is_said_and_does_not_make_a_winner() -> None:
    """Another day: everything is a fifth slower from the lever's second run on."""
    world, made = World(), []

    def answer(asked: Measurement) -> Result:
        made.append(asked)
        run = world.run(asked)
        slower = 0.8 if len(made) > BASELINE_RUNS + 1 else 1.0
        return run.model_copy(update={"value": (run.value or 0) * slower})

    states = explore(spec("null"), answer)
    assert any(event.startswith("DRIFT_SEEN") for state in states for event in state.events)
    assert statuses(states[-1])["null"] in ("rejected", "inconclusive")


def test_conflicting_levers_leave_the_queue() -> None:
    levers = (candidate("w2", conflicts=["w4"]), candidate("w4", conflicts=["w2"]))
    end = explore(spec(*levers), World({"w2": 0.1, "w4": 0.1}).run)[-1]
    assert sorted(statuses(end).values()) == ["accepted", "not_eligible"]


def test_levers_that_the_baselines_conditions_rule_out() -> None:
    world = World()

    def answer(asked: Measurement) -> Result:
        return world.run(asked).model_copy(update={"ineligible": {"a": "blocked on gfx950"}})

    end = explore(spec("a", "b"), answer)[-1]
    assert statuses(end)["a"] == "not_eligible"
    assert end.levers[0].why == "blocked on gfx950"
    assert end.shares == 1


def test_verified_claims_and_the_precision_switch_order_the_levers() -> None:
    switch = candidate(
        "fp32", kind="diagnostic", discriminates=True, classes=["gpu_compute"], conflicts=[]
    )
    dispatch = candidate("compile", classes=["cpu_dispatch"])
    compute = candidate("sdpa", classes=["gpu_compute"])
    world = World()

    def answer(asked: Measurement) -> Result:
        claimed = {"sdpa": 0.06} if asked.rep == 0 and asked.trial == "baseline" else {}
        return world.run(asked).model_copy(update={"claimed": claimed})

    end = explore(spec(dispatch, compute, switch), answer)[-1]
    assert end.boundness == "latency_bound"
    order = {record.id: record.order for record in end.levers}
    # Without the switch the claim would put sdpa first; latency-bound puts it last.
    assert order == {"fp32": 1, "compile": 2, "sdpa": 3}
    assert statuses(end)["fp32"] == "diagnosed"
    # Only levers that may be accepted share the error budget.
    assert end.shares == 2


def test_what_cannot_be_seen_is_not_paid_for() -> None:
    small = candidate("small", expected_high=0.05)
    end = explore(spec(small), World(sd=0.18, seed=1).run)[-1]
    assert statuses(end) == {"small": "hopeless"}
    assert len(end.results) == BASELINE_RUNS
    assert "can be seen" in end.levers[0].why


def test_the_gain_is_that_of_fresh_pairs_against_the_first_baseline() -> None:
    world = World({"a": 0.06, "b": 0.05}, seed=5)
    end = explore(spec("a", "b"), world.run)[-1]
    assert end.best == "a+b"
    states = confirmed(end, world.run)
    made = trials(states)
    assert made == ["a+b", "baseline", "baseline", "a+b"] * 2
    gain = states[-1].confirmation
    assert gain is not None
    assert gain.interval is not None
    assert gain.interval[0] < 0.1163 < gain.interval[1]
    assert (gain.candidate_runs, gain.best_runs) == (4, 4)
    fresh = {(m.trial, m.rep) for state in states for m in state.action.measure}
    assert fresh.isdisjoint({(r.measurement.trial, r.measurement.rep) for r in end.results})


def test_nothing_accepted_means_nothing_to_confirm() -> None:
    world = World()
    states = confirmed(explore(spec("null"), world.run)[-1], world.run)
    assert len(states) == 1
    assert "no gain to confirm" in states[0].action.why
