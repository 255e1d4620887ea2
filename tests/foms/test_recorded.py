"""Recorded runs of the real trainers: medians, memory, A/A comparisons."""

from __future__ import annotations

import csv
import re
import statistics
from pathlib import Path

import pytest
from scipy import stats

from perfproof.core.errors import InputError
from perfproof.foms.assemble import foms_of
from perfproof.foms.compare import compare
from perfproof.schema.base import Reason
from perfproof.schema.foms import Foms, Method, StepTimeSource
from tests.foms.logs import inventory
from tests.foms.test_figures import trace


@pytest.fixture(scope="session")
def runs(shared_data: Path) -> Path:
    """The folder of recorded runs."""
    return shared_data / "runs"


def read(run: Path, steps: list[int] | None = None) -> Foms:
    """FOMs of a recorded run; files that are no log, configuration or record are left out."""
    listed = inventory(run, run.name)
    keep = re.compile(r"log_rank\d+\.txt|config\.(json|yaml)|meta\.json")
    wanted = [a for a in listed.artifacts if keep.fullmatch(a.path)]
    summary = trace(steps) if steps else None
    return foms_of(listed.model_copy(update={"artifacts": wanted}), summary)


def reference(runs: Path, run: Path) -> dict[str, str]:
    with (runs / "results.csv").open() as stream:
        rows = {(row["model"], row["config"]): row for row in csv.DictReader(stream)}
    return rows[run.parent.name, run.name]


# Runs whose published window is the last epoch, as here: their medians are comparable.
SAME_WINDOW = (
    "hydragnn/egnn_fp64_b40_h1000_ddp2_rep1",
    "hydragnn/egnn_fp64_b40_h1000_ddp2_rep2",
    "hydragnn/mace_fp32_b128",
    "hydragnn/mace_fp32_b32_ownprofiler_stack_shapes",
    "hydragnn/mace_fp32_b32_rep1",
    "hydragnn/mace_fp32_b32_rep2",
    "hydragnn/mace_fp32_b32_rep3",
)


@pytest.mark.parametrize("name", SAME_WINDOW)
def test_median_and_rate_of_step_records(runs: Path, name: str) -> None:
    found, row = read(runs / name), reference(runs, runs / name)
    assert found.step_time_s is not None
    assert found.integrity.step_time_source is StepTimeSource.STEP_RECORD
    assert found.step_time_s.median * 1e3 == pytest.approx(float(row["step_ms_median"]), rel=0.02)
    assert found.throughput_samples_per_s == pytest.approx(float(row["fom"]), rel=0.02)
    assert found.throughput_method is Method.REALISED_BATCH
    assert found.integrity.partial_step_fraction == 0
    assert not found.problems


ORBIT2 = {
    "117m_bf16_b8_rep1": [],
    "117m_bf16_b8_rep2": [],
    "117m_bf16_b8_rep3": [],
    "117m_bf16_b8_1gpu_shapes": [6, 7, 8],
    "117m_bf16_b8_fsdp2_trace": [7, 8, 9],
    "117m_bf16_b8_trace": [7, 8, 9],
    "117m_fp32_b8_trace": [7, 8, 9],
}


@pytest.mark.parametrize("name", ORBIT2)
def test_records_of_every_step_come_before_the_models_own_lines(runs: Path, name: str) -> None:
    """tic4-tic1 leaves the loader out; the published rate, from the records, does not."""
    run = runs / "orbit2" / name
    found, row = read(run, ORBIT2[name]), reference(runs, run)
    assert found.step_time_s is not None
    # Where a trace was written between two epochs the records lack the epochs' last steps.
    cut = name in ("117m_bf16_b8_trace", "117m_fp32_b8_trace")
    source = StepTimeSource.TIC4_TIC1 if cut else StepTimeSource.STEP_RECORD
    assert found.integrity.step_time_source is source
    median = float(row["tic_ms_median" if cut else "step_ms_median"])
    assert found.step_time_s.median * 1e3 == pytest.approx(median, rel=0.005)
    rate = float(row["fom"])
    assert found.throughput_samples_per_s == pytest.approx(rate, rel=0.05 if cut else 0.005)
    assert found.reasons["epoch_time_s"] is Reason.NOT_PRINTED
    assert found.integrity.samples_per_epoch == 8 * found.integrity.ranks * (  # type: ignore[operator]
        found.integrity.batches_per_epoch or 0
    )


@pytest.mark.parametrize(
    "name", ["mace_fp32_b32_defjit_trace", "mace_fp64_b32_trace", "egnn_fp64_b32_h1000_trace"]
)
def test_last_unprofiled_epoch_of_traced_runs(runs: Path, name: str) -> None:
    """Published medians join two epochs that differ by up to 27 %; the log has them by epoch."""
    run = runs / "hydragnn" / name
    found = read(run, [8, 9, 10])
    text = (run / "log_rank0.txt").read_text(errors="replace")
    by_epoch = re.findall(r"fom rank=0 epoch=1 .* step_ms_median=([\d.]+)", text)
    assert found.step_time_s is not None
    assert found.step_time_s.median * 1e3 == pytest.approx(float(by_epoch[0]), rel=0.02)
    assert found.integrity.profiled_steps_excluded == 24


def test_second_epoch_of_the_small_model(runs: Path) -> None:
    """As published 79.2 ms, over both epochs; the second alone is slower."""
    run = runs / "orbit2" / "8m_fp32_b32_trace"
    text = (run / "log_rank0.txt").read_text()
    second = text[text.index("epoch:  1 batch_idx 1 ") :]
    times = [float(x) for x in re.findall(r"tic4-tic1 in ([\d.]+) seconds", second)]
    found = read(run, [7, 8, 9])
    assert found.step_time_s is not None
    assert found.step_time_s.median == pytest.approx(statistics.median(times))
    assert len(times) == found.integrity.steady_steps == 15


def test_memory_is_in_the_units_of_its_line(runs: Path) -> None:
    """The driver's decimal GB of the lowest rank against GiB and GB of the models' own lines."""
    for run in sorted([*runs.glob("hydragnn/*"), *runs.glob("orbit2/*")]):
        row = reference(runs, run)
        if row["ranks"] == "1" and float(row["peak_reserved_gb"] or 0) > 0:
            expected = float(row["peak_reserved_gb"]) * 1e9
            assert read(run).hbm_reserved_bytes == pytest.approx(expected, rel=2e-3), run.name


def test_two_ranks_reserve_different_amounts(runs: Path) -> None:
    found = read(runs / "hydragnn/egnn_fp64_b40_h1000_ddp2_rep1")
    assert found.hbm_reserved_bytes == 19_724_000_000


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("orbit2/117m_bf16_unfixed_names", Reason.NO_STEP_LINES),
        ("hydragnn/egnn_compile_aot_eager", Reason.NO_STEP_LINES),
        ("hydragnn/mace_compile_model_inductor", Reason.NO_STEP_LINES),
    ],
)
def test_runs_that_died_before_their_first_step(runs: Path, name: str, reason: Reason) -> None:
    found = read(runs / name)
    assert found.reasons["throughput_samples_per_s"] is reason
    assert len(found.problems) == 1


def test_tiny_runs_on_a_processor(runs: Path) -> None:
    hydragnn = read(runs / "cpu_mini/hydragnn_mace_nojit", [8, 9])
    assert hydragnn.reasons["throughput_samples_per_s"] is Reason.RANKS_UNKNOWN
    assert hydragnn.integrity.steady_steps == 5
    orbit2 = read(runs / "cpu_mini/orbit2_tiny", [3, 4])
    assert orbit2.integrity.steady_steps == 1
    assert orbit2.reasons["hbm_reserved_bytes"] is Reason.NO_DEVICE


REPEATED = ("hydragnn/mace_fp32_b32_rep", "orbit2/117m_bf16_b8_rep")


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("metric", ["throughput_samples_per_s", "step_time_s"])
def test_identical_runs_never_differ_significantly(runs: Path, name: str, metric: str) -> None:
    repeated = [read(runs / f"{name}{number}") for number in (1, 2, 3)]
    for alone in range(3):
        others = [run for at, run in enumerate(repeated) if at != alone]
        for a, b in (([repeated[alone]], others), (others, [repeated[alone]])):
            assert compare(a, b, metric=metric).verdict == "~"
        assert compare([repeated[alone]], others[:1], metric=metric).verdict == "unknown"


def test_a_test_on_steps_would_call_two_identical_runs_different(runs: Path) -> None:
    """The trap: steps of one run are not independent, so their Welch t is huge."""
    one, two = (read(runs / f"hydragnn/mace_fp32_b32_rep{number}") for number in (1, 3))
    steps = stats.ttest_ind(one.steady_step_times_s, two.steady_step_times_s, equal_var=False)
    assert abs(steps.statistic) > 5
    with pytest.raises(InputError, match="are one run"):
        compare([one, one], [two], metric="step_time_s")
    assert compare([one], [two], metric="step_time_s").verdict == "unknown"
