"""Throughput, distributions, epochs, memory: the numbers themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from perfproof.foms.figures import distribution
from perfproof.schema.base import Reason
from perfproof.schema.foms import Method
from perfproof.schema.traces import RankTrace, TraceSummary
from tests.foms.logs import (
    RANKS,
    Step,
    edm_log,
    end_bar,
    foms,
    hydragnn_config,
    layout,
    manifest,
    orbit2_config,
    start_bar,
)

RESERVED = "rank 0 torch.cuda.memory_reserved: 100.0GB\n"


def test_sum_of_samples_over_sum_of_times(tmp_path: Path) -> None:
    steps = [Step(9, 8), Step(1, 8), Step(3, 4)]
    text = edm_log([steps, steps])
    found = foms(tmp_path, {"log_rank0.txt": text, "config.yaml": orbit2_config(8)})
    assert found.throughput_samples_per_s == pytest.approx((8 + 4) * RANKS / (1 + 3))
    assert found.primary.value == found.throughput_samples_per_s
    assert found.samples_per_epoch == (8 + 8 + 4) * RANKS
    assert found.integrity.batches_per_epoch == 3
    assert found.reasons["epoch_time_s"] is Reason.NOT_PRINTED


def test_tensor_parallel_ranks_are_not_counted_twice(tmp_path: Path) -> None:
    text = edm_log([[Step(1, 8)] * 3] * 2, ranks=2).replace(layout(), layout(fsdp=1, tensor=2))
    found = foms(tmp_path, {"train.log": text, "config.yaml": orbit2_config(8, fsdp=1)})
    assert found.integrity.ranks == 2
    assert found.throughput_samples_per_s == pytest.approx(8)


def test_an_epoch_that_was_cut_short_is_no_whole_epoch(tmp_path: Path) -> None:
    text = edm_log([[Step(1, 8)] * 5, [Step(1, 8)] * 3])
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert found.samples_per_epoch == 5 * 8 * RANKS
    assert found.integrity.nominal_batch_per_rank is None
    assert found.integrity.reasons["partial_step_fraction"] is Reason.BATCH_UNKNOWN


def test_epochs_of_different_size_have_no_common_number_of_samples(tmp_path: Path) -> None:
    text = edm_log([[Step(1, 8)] * 3, [Step(1, 4)] * 3])
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert found.reasons["samples_per_epoch"] is Reason.DISAGREES


def test_no_batch_no_throughput(tmp_path: Path) -> None:
    found = foms(tmp_path, {"log_rank0.txt": edm_log([[Step(1)] * 4])})
    assert found.step_time_s is not None
    assert found.reasons["throughput_samples_per_s"] is Reason.BATCH_UNKNOWN
    assert found.integrity.reasons["realised_batches_per_rank"] is Reason.NOT_PRINTED


def test_no_ranks_no_throughput(tmp_path: Path) -> None:
    text = edm_log([[Step(1, 8)] * 4]).replace(layout(), "")
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert found.reasons["throughput_samples_per_s"] is Reason.RANKS_UNKNOWN


def test_an_epoch_time_without_its_samples_is_refused(tmp_path: Path) -> None:
    text = (start_bar(50) + end_bar(50, "1.50s/it")) * 3
    found = foms(tmp_path, {"log_rank0.txt": text, "meta.json": '{"ranks": 2}'})
    assert found.epoch_time_s is None
    assert found.reasons["epoch_time_s"] is Reason.BATCH_UNKNOWN
    assert found.integrity.batches_per_epoch == 50


def test_the_profiled_epoch_is_no_figure(tmp_path: Path) -> None:
    bars = "".join(start_bar(50) + end_bar(50, f"{rate}s/it") for rate in (9, 1, 3, 1))
    text = bars + "Total number of profiled events: 71925 at epoch 2\n"
    files = {"config.json": hydragnn_config(4), "meta.json": '{"ranks": 2}'}
    found = foms(tmp_path, {"log_rank0.txt": text, **files})
    assert found.epoch_time_s == pytest.approx(50)
    assert found.integrity.profiled_steps_excluded == 50


def test_only_the_first_epoch_and_a_profiled_one(tmp_path: Path) -> None:
    text = (start_bar(50) + end_bar(50, "1.00s/it")) * 2
    config = json.loads(hydragnn_config(4))
    config["NeuralNetwork"]["Profile"] = {"enable": 1, "target_epoch": 1}
    found = foms(tmp_path, {"log_rank0.txt": text, "config.json": json.dumps(config)})
    assert found.reasons["throughput_samples_per_s"] is Reason.ONLY_PROFILED
    assert found.reasons["epoch_time_s"] is Reason.ONLY_PROFILED


def trace(steps: list[int]) -> TraceSummary:
    unknown = ("world_size", "device_name", "window_start_ns", "window_duration_ns", "base_time_ns")
    rank = RankTrace(
        rank=0,
        file="trace_rank0.json.gz",
        events=1,
        gpu_events=1,
        unlinked_gpu_events=0,
        steps=steps,
        window_kind="steps",
        tables={},
        findings=[],
        reasons=dict.fromkeys(unknown, Reason.NOT_RECORDED),
        **dict.fromkeys(unknown),
    )
    return TraceSummary(run_id="run", ranks=[rank])


def test_steps_of_the_trace_are_excluded(tmp_path: Path) -> None:
    steps = [Step(1, 8)] * 16
    steps[5:11] = [Step(50, 8)] * 6
    files = {"log_rank0.txt": edm_log([steps]), "config.yaml": orbit2_config(8)}
    found = foms(tmp_path, files, trace([8, 9]))
    assert set(found.steady_step_times_s) == {1}
    assert found.integrity.profiled_steps_excluded == 6
    everything = foms(tmp_path, files, trace(list(range(16))))
    assert everything.reasons["step_time_s"] is Reason.ONLY_PROFILED


def test_memory_is_a_share_of_the_recorded_device(tmp_path: Path) -> None:
    text = edm_log([[Step(1, 8)] * 4]) + RESERVED
    alone = foms(tmp_path / "alone", {"log_rank0.txt": text})
    assert alone.hbm_reserved_bytes == 100 * 2**30
    assert alone.reasons["hbm_reserved_fraction"] is Reason.DEVICE_CAPACITY_UNKNOWN
    files = {"log_rank0.txt": text, "manifest.json": manifest().model_dump_json()}
    found = foms(tmp_path / "known", files)
    assert found.hbm_reserved_fraction == pytest.approx(100 * 2**30 / (288 * 10**9))
    integrity = found.integrity
    assert (integrity.device_name, integrity.node_list) == ("MI355X", ["n2", "n1"])
    assert (integrity.model, integrity.workload, integrity.dtype) == (
        "orbit2",
        "upstream",
        "bfloat16",
    )


def test_a_run_on_a_cpu_reserves_nothing(tmp_path: Path) -> None:
    text = edm_log([[Step(1, 8)] * 4]) + "rank 0 torch.cuda.memory_reserved: 0.000000GB\n"
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert found.reasons["hbm_reserved_bytes"] is Reason.NO_DEVICE


def test_distribution() -> None:
    many = distribution(np.array([1.0, 2.0, 3.0, 10.0]))
    assert (many.n, many.mean, many.median) == (4, 4.0, 2.5)
    assert many.standard_error == pytest.approx(np.std([1, 2, 3, 10], ddof=1) / 2)
    assert distribution(np.array([1.0])).reasons["standard_error"] is Reason.TOO_FEW_VALUES


def test_times_every_tenth_step_only_give_way_to_records(tmp_path: Path) -> None:
    old = "".join(
        f"Starting epoch {e}\nBatch 0: 9.0 seconds\nBatch 10: 5.0 seconds\n" for e in (0, 1)
    )
    lines = [
        f"[perfproof] step epoch={e} i={i} dt=1.0 samples=8\n" for e in (0, 1) for i in range(4)
    ]
    found = foms(tmp_path, {"log_rank0.txt": layout() + old + "".join(lines)})
    assert found.steady_step_times_s == [1.0] * 3
    assert found.throughput_method is Method.REALISED_BATCH
