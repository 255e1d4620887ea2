"""One test a defect that FOM extractors in use have, with the numbers seen there."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from perfproof.core.files import read_record
from perfproof.foms.agree import FIELDS
from perfproof.foms.compare import compare
from perfproof.foms.extract import main
from perfproof.schema.base import Reason
from perfproof.schema.foms import Foms, LossVerdict, Method
from tests.foms.logs import (
    RANKS,
    Step,
    edm_log,
    end_bar,
    epoch_line,
    foms,
    hydragnn_config,
    inventory,
    orbit2_config,
    start_bar,
)

BATCHES = 50
SIXTEEN = {"meta.json": json.dumps({"ranks": 16}), "config.json": hydragnn_config(200)}


def bars(ranks: int = 1) -> str:
    """Epochs of 100, 75 and 75 s, with bars of `ranks` ranks in one log."""
    rates = ("2.00s/it", "1.50s/it", "1.50s/it")
    return "".join((start_bar(BATCHES) + end_bar(BATCHES, rate)) * ranks for rate in rates)


def test_defect_1_job_timer_is_never_an_epoch(tmp_path: Path) -> None:
    timer = "0: Process 0 - Local timer:  train_validate_test  :  251.3\n"
    found = foms(tmp_path, {"train.log": bars() + timer, **SIXTEEN})
    assert found.epoch_time_s == pytest.approx(75)
    assert found.throughput_samples_per_s == pytest.approx(BATCHES * 200 * 16 / 75)
    assert found.throughput_method is Method.EPOCH_RATE


@pytest.mark.parametrize("closing_lines", [False, True])
def test_defect_2_sixteen_ranks_times_three_epochs_are_three(
    tmp_path: Path, closing_lines: bool
) -> None:
    rates = ("2.00s/it", "1.50s/it", "1.50s/it")
    text = ""
    for epoch, rate in enumerate(rates):
        text += start_bar(BATCHES) * 16 + end_bar(BATCHES, rate) * 16
        text += epoch_line(epoch, 5.0 - epoch) if closing_lines else ""
    found = foms(tmp_path, {"train.log": text, **SIXTEEN})
    assert found.epoch_time_s == pytest.approx(75)
    assert found.samples_per_epoch == BATCHES * 200 * 16
    assert found.throughput_samples_per_s == pytest.approx(BATCHES * 200 * 16 / 75)


def test_defect_2_only_the_final_bars_are_left_in_the_log(tmp_path: Path) -> None:
    rates = ("2.00s/it", "1.50s/it", "1.50s/it")
    text = "".join(end_bar(BATCHES, rate) * 16 for rate in rates)
    assert foms(tmp_path, {"train.log": text, **SIXTEEN}).epoch_time_s == pytest.approx(75)


def test_defect_3_epochs_faster_than_one_batch_a_second_count(tmp_path: Path) -> None:
    rates = ("2.00s/it", "1.25it/s", "500.00ms/it")
    text = "".join(start_bar(BATCHES) + end_bar(BATCHES, rate) for rate in rates)
    found = foms(tmp_path, {"train.log": text, **SIXTEEN})
    assert found.epoch_time_s == pytest.approx((40 + 25) / 2)


def test_defect_4_a_missing_loss_has_a_reason_and_no_verdict(tmp_path: Path) -> None:
    found = foms(tmp_path, {"train.log": bars(), **SIXTEEN})
    assert found.final_loss is None
    assert found.reasons["final_loss"] is Reason.NO_LOSS_LINES
    assert found.loss_verdict is LossVerdict.UNKNOWN


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf"])
def test_defect_5_nan_after_epoch_2_is_seen_and_keeps_its_time(tmp_path: Path, bad: str) -> None:
    losses: list[object] = [0.9, 0.8, 0.7, bad, bad]
    epochs = [[Step(1.0 + epoch, 4096, loss)] * 3 for epoch, loss in enumerate(losses)]
    text = edm_log(epochs)
    found = foms(tmp_path, {"log_rank0.txt": text, "config.yaml": orbit2_config(4096)})
    assert found.non_finite_count == 6
    assert found.loss_verdict is LossVerdict.NON_FINITE
    assert [point.loss for point in found.loss_curve][3:] == [None, None]
    assert found.reasons["final_loss"] is Reason.NON_FINITE
    assert found.steady_step_times_s == [2, 2, 3, 3, 4, 4, 5, 5]
    other = found.model_copy(update={"final_loss": 1.0, "reasons": {}})
    assert not compare([found], [other]).comparable


def test_defect_5_a_non_finite_epoch_loss_of_any_rank_counts(tmp_path: Path) -> None:
    text = bars() + epoch_line(0, 5.0) + epoch_line(0, "nan", rank=3)
    found = foms(tmp_path, {"train.log": text, **SIXTEEN})
    assert found.non_finite_count == 1
    assert found.loss_verdict is LossVerdict.NON_FINITE


def test_defect_6_noise_between_epochs_is_no_violation(tmp_path: Path) -> None:
    def verdict(name: str, losses: list[float]) -> LossVerdict:
        epochs = [[Step(1.0, 4096, loss)] * 2 for loss in losses]
        return foms(tmp_path / name, {"log_rank0.txt": edm_log(epochs)}).loss_verdict

    assert verdict("noisy", [2.0, 1.2, 1.3, 1.25, 1.1]) is LossVerdict.DECREASING
    assert verdict("flat", [2.0, 1.999999, 1.999998]) is LossVerdict.NOT_DECREASING
    assert verdict("rising", [2.0, 2.5]) is LossVerdict.NOT_DECREASING
    assert verdict("single", [2.0]) is LossVerdict.TOO_SHORT


def run_extract(monkeypatch: pytest.MonkeyPatch, root: Path, out: Path) -> tuple[int, Foms]:
    monkeypatch.setattr("sys.argv", ["extract", "--inventory", str(root), "--out", str(out)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0), read_record(out, Foms)


def write_inventory(root: Path, path: Path) -> Path:
    path.write_text(inventory(root).model_dump_json())
    return path


def test_defect_7_nothing_depends_on_where_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    direct = foms(root, {"train.log": bars(), **SIXTEEN})
    listed = write_inventory(root, tmp_path / "inventory.json")
    monkeypatch.chdir(tmp_path.anchor)
    code, found = run_extract(monkeypatch, listed, tmp_path / "out" / "foms.json")
    assert code == 0
    assert found == direct
    assert found.epoch_time_s == pytest.approx(75)


def test_defect_8_an_older_foms_json_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out = tmp_path / "run", tmp_path / "foms.json"
    foms(root, {"train.log": bars(), **SIXTEEN})
    listed = write_inventory(root, tmp_path / "inventory.json")
    assert run_extract(monkeypatch, listed, out)[1].epoch_time_s is not None
    (root / "train.log").write_text("killed before the first step\n")
    write_inventory(root, listed)
    code, found = run_extract(monkeypatch, listed, out)
    assert code == 0
    assert found.epoch_time_s is None
    assert found.throughput_samples_per_s is None
    assert found.reasons["throughput_samples_per_s"] is Reason.NO_STEP_LINES


# Five loader-starved epochs of EDM at a per-rank batch of 4096. The reference run is the one with
# one worker; each phantom is the throughput that the nominal batch would give.
BASELINE_STEP_S = 4096 * RANKS / 2987


def edm_run(root: Path, epochs: list[list[Step]]) -> Foms:
    files = {"log_rank0.txt": edm_log(epochs), "config.yaml": orbit2_config(4096)}
    return foms(root, files)


def baseline(root: Path) -> Foms:
    return edm_run(root, [[Step(BASELINE_STEP_S, 4096)] * 4] * 5)


def nominal(found: Foms) -> float:
    assert found.step_time_s is not None
    return 4096 * RANKS / found.step_time_s.mean


def test_phantom_129_percent_is_a_loss(tmp_path: Path) -> None:
    """60 files, four workers: every step has 1704 samples, and four steps make an epoch."""
    phantom = edm_run(tmp_path / "nw4", [[Step(4096 * RANKS / 7215, 1704)] * 4] * 5)
    reference = edm_run(tmp_path / "nw1", [[Step(4096 * RANKS / 3150, 4096)] * 3] * 5)
    assert nominal(phantom) / nominal(reference) == pytest.approx(2.29, abs=0.01)
    assert phantom.throughput_samples_per_s == pytest.approx(3001, rel=1e-3)
    assert phantom.integrity.partial_step_fraction == 1
    assert phantom.integrity.realised_batches_per_rank == [1704]
    verdict = compare([reference], [phantom])
    assert not verdict.comparable
    assert verdict.ratio is None
    assert any(
        line.startswith("realised_batches_per_rank: a 4096, b 1704") for line in verdict.differs
    )
    assert any(line.startswith("batches_per_epoch: a 3, b 4") for line in verdict.differs)


def test_phantom_80_percent_is_2_7_percent(tmp_path: Path) -> None:
    """100 files, four workers: three full steps of 4096 and four of 1016 an epoch."""
    total_s = 7 * 4096 * RANKS / 5379
    steps = [Step(total_s / 7, size) for size in (4096, 4096, 1016, 4096, 1016, 4096, 1016, 1016)]
    phantom, reference = edm_run(tmp_path / "nw4", [steps] * 5), baseline(tmp_path / "nw1")
    assert nominal(phantom) / nominal(reference) == pytest.approx(1.80, abs=0.01)
    assert phantom.integrity.realised_batches_per_rank == [1016, 4096]
    assert phantom.integrity.partial_step_fraction == pytest.approx(0.57, abs=0.005)
    assert phantom.throughput_method is Method.REALISED_BATCH
    assert phantom.throughput_samples_per_s == pytest.approx(3068, rel=1e-3)
    assert not compare([reference], [phantom]).comparable
    meant = frozenset(
        {
            "realised_batches_per_rank",
            "batches_per_epoch",
            "samples_per_epoch",
            "partial_step_fraction",
        }
    )
    assert compare([reference], [phantom], allow=meant).ratio == pytest.approx(1.027, abs=1e-3)


def test_defect_13_a_verdict_is_one_field_of_a_table(tmp_path: Path) -> None:
    phantom = edm_run(tmp_path / "b", [[Step(1.0, 1704)] * 4] * 5)
    verdict = compare([baseline(tmp_path / "a")], [phantom])
    row = [verdict.metric, verdict.verdict, "; ".join(verdict.differs)]
    assert "," not in row[0] + row[1]
    text = io.StringIO()
    csv.writer(text).writerow(row)
    assert next(csv.reader([text.getvalue()])) == row
    for difference in verdict.differs:
        name, values = difference.split(": ")
        assert name in FIELDS
        assert len(values.split(", ")) == 2


def test_defect_39_a_nominal_baseline_is_held_against_no_realised_one(tmp_path: Path) -> None:
    """Batch 1024 of a data set of 1704 samples a rank: every second step has 680 samples."""
    steps = [Step(2.0, 1024 if index % 2 == 0 else 680) for index in range(7)]
    config = {"config.yaml": orbit2_config(1024)}
    sized = foms(tmp_path / "sized", {"log_rank0.txt": edm_log([steps] * 4), **config})
    bare = [Step(step.seconds) for step in steps]
    unsized = foms(tmp_path / "unsized", {"log_rank0.txt": edm_log([bare] * 4), **config})
    assert unsized.throughput_method is Method.NOMINAL_BATCH
    assert unsized.throughput_samples_per_s == pytest.approx(1024 * RANKS / 2)
    assert sized.throughput_samples_per_s == pytest.approx((1024 + 680) / 2 * RANKS / 2)
    assert sized.integrity.partial_step_fraction == 0.5
    verdict = compare([unsized], [sized])
    assert verdict.verdict == "not_comparable"
    methods = [line for line in verdict.differs if line.startswith("throughput_method")]
    assert methods == [f"throughput_method: a {Method.NOMINAL_BATCH}, b {Method.REALISED_BATCH}"]
    assert not math.isclose(unsized.primary.value or 0, sized.primary.value or 0)
