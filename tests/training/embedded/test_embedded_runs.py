"""Whole runs of both embedded models on two ranks, and what they leave."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.tiny_runs import Run

pytestmark = pytest.mark.slow

Launched = Callable[[str, str], Run]

STEP = re.compile(
    r"^\[perfproof\] step epoch=(?P<epoch>\d+) i=(?P<i>\d+) t=(?P<t>\d+\.\d{6}) "
    r"dt=(?P<dt>\d+\.\d{6}) samples=(?P<samples>\d+) dataload=(?P<dataload>\d+\.\d{6}) "
    r"loss=(?P<loss>\d+\.\d{6}) profiled=(?P<profiled>[01]) rank=0$",
    re.MULTILINE,
)


@pytest.fixture(scope="session")
def hydragnn(launched: Launched) -> Run:
    return launched("hydragnn", "ranks_2")


@pytest.fixture(scope="session")
def orbit2(launched: Launched) -> Run:
    return launched("orbit2", "num_workers_2+ranks_2")


def trace(run: Run, rank: int) -> dict[str, Any]:
    path: Path = run.directory / "traces" / f"rank{rank}.pt.trace.json.gz"
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


def profiler_steps(run: Run, rank: int) -> set[str]:
    names = {str(event.get("name", "")) for event in trace(run, rank)["traceEvents"]}
    return {name for name in names if name.startswith("ProfilerStep#")}


def test_hydragnn_prints_one_record_a_step(hydragnn: Run) -> None:
    steps = [m.groupdict() for m in STEP.finditer(hydragnn.log())]
    counts = Counter((int(s["epoch"]), int(s["profiled"])) for s in steps)
    assert counts == {(0, 0): 3, (1, 0): 3, (2, 1): 5}
    assert {s["samples"] for s in steps} == {"4"}
    for before, after in itertools.pairwise(steps):
        # Between the first two steps the rank writes its report, which is no step's time.
        if before["epoch"] == after["epoch"] and before["i"] + before["epoch"] != "00":
            gap = float(after["t"]) - float(before["t"])
            assert gap == pytest.approx(float(before["dt"]), abs=1e-3)
    assert all(float(s["dataload"]) < float(s["dt"]) for s in steps)


def test_hydragnn_prints_the_lines_of_the_real_model(hydragnn: Run) -> None:
    log = hydragnn.log()
    number = r"\d+\.\d{8}"
    assert re.findall(
        rf"^0: Epoch: (\d\d), Train Loss: {number}, Val Loss: {number}, Test Loss: {number}$",
        log,
        re.MULTILINE,
    ) == ["00", "01"]
    for line in (
        r"\[precision-diagnostic\] requested=fp64 model_param_dtype=torch\.float64",
        r"\[precision-diagnostic\] first_batch_float_dtype=torch\.float64",
        r"0: Tasks Train Loss: \[\d+\.\d+, \d+\.\d+\]",
        r"0: Process 0 - Local timer:  train_validate_test  :  \d+\.\d\d",
        r"Total number of profiled events: [1-9]\d* at epoch 2",
        r"Train: 100%\|█+\| 3/3 \[.*",
    ):
        assert re.search(f"^{line}$", log, re.MULTILINE), line
    assert "Max memory" not in log
    assert "[perfproof]" not in hydragnn.log(1)


def test_orbit2_prints_the_lines_of_the_real_model(orbit2: Run) -> None:
    log = orbit2.log()
    assert "world_size 2 world_rank 0 local_rank 0\ndata_par_size 2 fsdp_size 1 " in log
    assert re.findall(r"^epoch  (\d)$", log, re.MULTILINE) == ["0", "1", "2"]
    step = (
        r"y\.shape torch\.Size\(\[\d, 3, 4, 8\]\)\n"
        r"epoch:  \d batch_idx \d world_rank 0  loss  tensor\(\d\.\d{4}, "
        r"grad_fn=<MeanBackward0>\)\n"
        r"my rank 0\. tic4-tic1 in \d+\.\d{4} seconds\n\n"
    )
    assert len(re.findall(step, log)) == 4 + 4 + 5
    assert re.search(r"^epoch:  1  epoch_loss  tensor\(\d+\.\d{4}\)$", log, re.MULTILINE)
    assert "memory_reserved" not in log
    assert "world_rank 1  loss " in orbit2.log(1)
    assert "tic4-tic1" not in orbit2.log(1)


def test_orbit2_realised_batches_are_those_of_the_shards(orbit2: Run) -> None:
    # 8 files over 2 ranks x 2 workers: 2 files of 3 samples each, so 4 and 2 by turns.
    for rank in (0, 1):
        sizes = re.findall(r"y\.shape torch\.Size\(\[(\d),", orbit2.log(rank))
        assert sizes[:4] == ["4", "4", "2", "2"]


@pytest.mark.parametrize("name", ["hydragnn", "orbit2"])
def test_every_rank_leaves_a_trace_of_the_window_only(
    name: str, request: pytest.FixtureRequest
) -> None:
    run: Run = request.getfixturevalue(name)
    for rank in (0, 1):
        assert profiler_steps(run, rank) == {f"ProfilerStep#{i}" for i in (2, 3, 4)}
        assert trace(run, rank)["distributedInfo"]["rank"] == rank


@pytest.mark.parametrize(
    ("name", "dtype", "workers"), [("hydragnn", "float64", 0), ("orbit2", "float32", 2)]
)
def test_rank_0_reports_what_it_realised(
    name: str, dtype: str, workers: int, request: pytest.FixtureRequest
) -> None:
    run: Run = request.getfixturevalue(name)
    report = run.manifest.rank0
    assert report is not None
    assert (report.world_size, report.dtype, report.num_workers) == (2, dtype, workers)
    assert report.profiled_epochs == [2]
    assert report.env == {"OMP_NUM_THREADS": "1"}
    assert report.effects["intra_op_threads"] == "1"
    assert report.effects["compile"] == "off"
    assert report.device.kind == "cpu"


def test_orbit2_reports_the_attention_it_used(orbit2: Run) -> None:
    report = orbit2.manifest.rank0
    assert report is not None
    assert report.effects["sdpa_backends"] == "cudnn+efficient+flash+math"
    assert report.effects["sdpa_var_agg_batch"] == "32"
    assert report.effects["sdpa_blocks"] in ("flash", "math")


def test_no_checkpoint_is_written_unasked(hydragnn: Run, orbit2: Run) -> None:
    for run in (hydragnn, orbit2):
        assert not (run.directory / "checkpoints").exists()


def test_compiling_force_training_fails_with_pytorchs_own_words(launched: Launched) -> None:
    log = launched("hydragnn", "compile_eager+no_profile").log()
    assert re.search(r"^RuntimeError: .*(double backward|donated buffer)", log, re.MULTILINE)
