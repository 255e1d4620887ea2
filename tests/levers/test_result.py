from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.levers.result import Seen, result_of
from perfproof.schema.base import Reason
from perfproof.schema.claims import BottleneckClass, Source, Verdict, VerifiedClaim, VerifiedSet
from perfproof.schema.cluster import Cause, EndState
from perfproof.schema.foms import Foms
from perfproof.schema.levers import LeverCatalog
from perfproof.schema.loop import Measurement, Result
from perfproof.schema.run import State
from tests.foms import logs
from tests.foms.logs import RANKS, Step
from tests.foms.test_recorded import read
from tests.levers.runs import (
    CPU,
    SITE,
    catalog,
    edm,
    ending,
    lever,
    manifest,
    seen,
    without_rank0,
)

WORKERS = lever("num_workers_4", effect_proof={"num_workers": 4})
NOTHING = catalog()


def result(run: Seen, against: Seen | None = None, levers: LeverCatalog = NOTHING) -> Result:
    return result_of(
        Measurement(trial=run.manifest.resolved.trial, rep=0), run, levers, SITE, against=against
    )


def fields(found: Result) -> list[str]:
    return [line.partition(":")[0] for line in found.differs]


@pytest.fixture
def plain(tmp_path: Path) -> Foms:
    return edm(tmp_path / "plain", [Step(8.0, 4096)] * 4)


def test_a_measured_run(plain: Foms) -> None:
    found = result(seen(manifest(), plain))
    assert (found.ending, found.cause) == ("measured", None)
    assert found.value == pytest.approx(4096 * RANKS / 8)
    assert found.final_loss == pytest.approx(0.5)
    assert found.non_finite_count == 0
    assert found.node_list == ["n2", "n1"]
    assert found.node_hours == pytest.approx(600 / 3600)
    assert found.fingerprint.arch == "gfx950"
    assert found.differs == []


# The two phantom wins by the nominal batch, and the same two runs by what they did.
def test_phantom_129_percent_is_not_comparable(tmp_path: Path) -> None:
    phantom = edm(tmp_path / "nw4", [Step(4096 * RANKS / 7215, 1704)] * 4)
    true = edm(tmp_path / "nw1", [Step(4096 * RANKS / 3150, 4096)] * 3)
    against = seen(manifest(), true)
    found = result(seen(manifest("num_workers_4"), phantom), against, catalog(WORKERS))
    assert {"realised_batches_per_rank", "batches_per_epoch"} <= set(fields(found))
    assert found.value == pytest.approx(3001, rel=1e-3)


def test_phantom_80_percent_is_not_comparable(tmp_path: Path) -> None:
    step_s = 4096 * RANKS / 5379
    sizes = (4096, 4096, 1016, 4096, 1016, 4096, 1016, 1016)
    phantom = edm(tmp_path / "nw4", [Step(step_s, size) for size in sizes])
    true = edm(tmp_path / "nw1", [Step(4096 * RANKS / 2993, 4096)] * 8)
    against = seen(manifest(), true)
    found = result(seen(manifest("num_workers_4"), phantom), against, catalog(WORKERS))
    assert {"realised_batches_per_rank", "partial_step_fraction"} <= set(fields(found))


def epochs(root: Path, batch: int, seconds: float) -> Foms:
    """HydraGNN epochs of 50 batches, as its bars print them."""
    bar = logs.start_bar(50) + logs.end_bar(50, f"{seconds / 50:.2f}s/it")
    records = {
        "config.json": logs.hydragnn_config(batch),
        "meta.json": '{"ranks": 16}',
    }
    return logs.foms(root, {"log_rank0.txt": bar * 4, **records})


BATCH = lever(
    "batch_800",
    effect_proof={"batch_size": 800},
    may_change=["nominal_batch_per_rank", "samples_per_epoch", "batches_per_epoch"],
)


@pytest.mark.parametrize(("longer", "gain"), [(1.568, 1.28), (1.872, 1.07)])
def test_the_false_loss_of_batch_800_is_a_gain(tmp_path: Path, longer: float, gain: float) -> None:
    small, large = epochs(tmp_path / "400", 400, 76.0), epochs(tmp_path / "800", 800, 76 * longer)
    against, run = seen(manifest(), small), seen(manifest("batch_800"), large)
    found, before = result(run, against, catalog(BATCH)), result(against)
    assert found.differs == []
    assert found.value is not None
    assert before.value is not None
    assert found.value / before.value == pytest.approx(gain, abs=0.01)


def test_times_of_unequal_work_are_never_compared(tmp_path: Path) -> None:
    """Not even where the lever means to change the work."""
    small, large = epochs(tmp_path / "400", 400, 76.0), epochs(tmp_path / "800", 800, 119.2)
    run, against = seen(manifest("batch_800"), large), seen(manifest(), small)
    asked = Measurement(trial="batch_800", rep=0)
    found = result_of(asked, run, catalog(BATCH), SITE, against=against, metric="epoch_time_s")
    assert {"nominal_batch_per_rank", "samples_per_epoch"} <= set(fields(found))


def test_a_batch_that_no_lever_changes_is_a_difference(tmp_path: Path) -> None:
    small, large = epochs(tmp_path / "400", 400, 76.0), epochs(tmp_path / "800", 800, 119.2)
    found = result(seen(manifest(), large), seen(manifest(), small))
    assert fields(found) == ["nominal_batch_per_rank", "samples_per_epoch"]


DTYPE = lever("fp32", may_change=["dtype"], effect_proof={"dtype": "float32"})
OTHER = lever("other", effect_proof={"num_workers": 1})


@pytest.mark.parametrize(
    ("mine", "theirs", "differs"),
    [
        (["fp32"], [], []),
        ([], ["fp32"], []),
        (["fp32", "other"], ["other"], []),
        (["other"], [], ["dtype"]),
        (["fp32"], ["fp32"], ["dtype"]),
    ],
)
def test_only_levers_of_one_side_may_change_what_they_mean_to(
    plain: Foms, mine: list[str], theirs: list[str], differs: list[str]
) -> None:
    single = plain.integrity.model_copy(update={"dtype": "float32"})
    double = plain.integrity.model_copy(update={"dtype": "float64"})
    run = seen(manifest(*mine), plain.model_copy(update={"integrity": single}))
    against = seen(manifest(*theirs), plain.model_copy(update={"integrity": double}))
    assert fields(result(run, against, catalog(DTYPE, OTHER))) == differs


def test_a_field_that_is_none_is_refused(plain: Foms) -> None:
    strange = catalog(lever("one", may_change=["colour"]))
    with pytest.raises(InputError, match="unknown integrity field 'colour'"):
        result(seen(manifest("one"), plain), seen(manifest(), plain), strange)
    with pytest.raises(InputError, match="unknown lever 'two'"):
        result(seen(manifest("two"), plain), None, strange)


def test_a_loss_that_is_no_number_is_said_and_differs_from_every_run(tmp_path: Path) -> None:
    steps = [Step(8.0, 4096, "nan")] * 4
    diverged, good = edm(tmp_path / "nan", steps), edm(tmp_path / "good", [Step(8.0, 4096)] * 4)
    found = result(seen(manifest(), diverged), seen(manifest(), good))
    assert (found.ending, found.cause) == ("measured", "non_finite_loss")
    assert found.final_loss is None
    assert found.reasons["final_loss"] is Reason.NON_FINITE
    assert found.non_finite_count == 20
    assert fields(found) == ["loss_verdict"]


@pytest.mark.parametrize(
    ("state", "cause", "answers", "word"),
    [
        (EndState.FAILED, Cause.DEVICE_MEMORY, "failed", "device_memory"),
        (EndState.FAILED, Cause.HANG, "failed", "hang"),
        (EndState.TIMEOUT, None, "failed", "timeout"),
        (EndState.NODE_FAIL, None, "infrastructure", "node_fail"),
        (EndState.FAILED, Cause.DISK_FULL, "infrastructure", "disk_full"),
    ],
)
def test_a_run_that_failed_has_no_figure_whatever_its_log_holds(
    plain: Foms, state: EndState, cause: Cause | None, answers: str, word: str
) -> None:
    run = seen(manifest(state=State.FAILED), plain, ending=ending(state, cause))
    found = result(run, seen(manifest(), plain))
    assert (found.ending, found.cause) == (answers, word)
    assert found.value is found.final_loss is found.non_finite_count is None
    assert set(found.reasons.values()) == {Reason.RUN_INCOMPLETE}
    assert found.differs == []


def test_a_figure_that_cannot_be_had_keeps_its_reason(tmp_path: Path) -> None:
    empty = logs.foms(tmp_path / "empty", {"log_rank0.txt": "nothing\n"})
    found = result(seen(manifest(), empty))
    assert found.ending == "measured"
    assert found.reasons["value"] is Reason.NO_STEP_LINES


def test_node_hours_hold_all_tries_and_nodes(plain: Foms) -> None:
    run = manifest()
    two = run.resolved.model_copy(update={"nodes": 2})
    run = run.model_copy(update={"resolved": two})
    lost = run.model_copy(update={"duration_s": None})
    found = result(seen(run, plain, attempts=[run, lost]))
    assert found.node_hours == pytest.approx(2 * 2 * 600 / 3600)


def claim(number: int, verdict: Verdict, share: float | None, levers: list[str]) -> VerifiedClaim:
    fields: dict[str, Any] = {
        "id": f"TR-{number:03d}",
        "class": BottleneckClass.GPU_COMPUTE,
        "source": Source.TRACE,
        "statement": "test",
        "metric": "test",
        "value": 1.0,
        "unit": "1",
        "share_of_step": share,
        "ranks": [],
        "evidence": [],
        "remedy": None,
        "levers": levers,
        "verdict": verdict,
        "verifier_value": 1.0,
        "tolerance": 0.1,
        "note": "test",
    }
    fields["reasons"] = {"remedy": Reason.NO_REMEDY}
    if share is None:
        fields["reasons"]["share_of_step"] = Reason.NO_SHARE
    return VerifiedClaim.model_validate(fields)


def test_verified_claims_name_levers_with_the_largest_share(plain: Foms) -> None:
    claims = [
        claim(1, Verdict.VERIFIED, 0.4, ["bf16", "batch_16"]),
        claim(2, Verdict.VERIFIED, 0.6, ["bf16"]),
        claim(3, Verdict.REFUTED, 0.9, ["sdpa_math"]),
        claim(4, Verdict.VERIFIED, None, ["tf32"]),
    ]
    verified = VerifiedSet(run_id="run", source=Source.TRACE, claims=claims)
    asked = Measurement(trial="baseline", rep=0)
    found = result_of(asked, seen(manifest(), plain), NOTHING, SITE, verified=[verified])
    assert found.claimed == {"batch_16": 0.4, "bf16": 0.6}


def test_the_baseline_settles_which_levers_make_no_sense(plain: Foms) -> None:
    levers = catalog(
        lever("amd", requires={"vendor": ["amd"]}),
        lever("nvidia", requires={"vendor": ["nvidia"]}),
        lever("none"),
    )
    assert result(seen(manifest(), plain), None, levers).ineligible.keys() == {"nvidia"}
    on_cpu = result(seen(manifest(device=CPU), plain), None, levers)
    assert on_cpu.ineligible == {
        "amd": "needs vendor amd, found none",
        "nvidia": "needs vendor nvidia, found none",
    }
    assert result(seen(manifest("nvidia"), plain), None, levers).ineligible == {}


def test_a_run_without_report_is_judged_by_what_was_asked(plain: Foms) -> None:
    dead = without_rank0(manifest("num_workers_4", state=State.FAILED))
    found = result(seen(dead, ending=ending(EndState.FAILED, Cause.ABORTED)), None,
                   catalog(WORKERS))  # fmt: skip
    assert found.cause == "aborted"
    assert [finding.seen for finding in found.proof] == [None]


IDENTICAL = [
    ("orbit2", "117m_bf16_b8_rep1", "117m_bf16_b8_rep2", "117m_bf16_b8_rep3"),
    ("hydragnn", "mace_fp32_b32_rep1", "mace_fp32_b32_rep2", "mace_fp32_b32_rep3"),
    ("hydragnn", "egnn_fp64_b40_h1000_ddp2_rep1", "egnn_fp64_b40_h1000_ddp2_rep2"),
]


@pytest.mark.parametrize("names", IDENTICAL)
def test_recorded_identical_runs_differ_in_nothing(
    shared_data: Path, names: tuple[str, ...]
) -> None:
    model, *runs = names
    found = {run: seen(manifest(), read(shared_data / "runs" / model / run)) for run in runs}
    for one, two in itertools.permutations(runs, 2):
        held = result(found[one], found[two])
        assert held.ending == "measured"
        assert held.value is not None
        assert held.differs == []


def test_recorded_runs_of_other_work_differ(shared_data: Path) -> None:
    runs = shared_data / "runs" / "hydragnn"
    small, large = (
        seen(manifest(), read(runs / name)) for name in ("mace_fp32_b32_rep1", "mace_fp32_b128")
    )
    assert {"nominal_batch_per_rank", "realised_batches_per_rank"} <= set(
        fields(result(large, small))
    )
