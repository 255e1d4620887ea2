"""Numbers that are none, and logs with any damage: a figure or a reason, never an exception."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfproof.foms import blocks
from perfproof.foms.formats.base import number
from perfproof.schema.base import Reason
from perfproof.schema.foms import LossVerdict
from tests.foms.logs import (
    Step,
    edm_log,
    end_bar,
    epoch_line,
    foms,
    hydragnn_config,
    layout,
    orbit2_config,
    parse,
    start_bar,
    step_record,
    three_epochs_of_bars,
)

GOOD = edm_log([[Step(0.25, 8)] * 4] * 2)
BARS = three_epochs_of_bars(9, "1.00s/it")
RUN = {"config.json": hydragnn_config(4), "meta.json": '{"ranks": 2}'}
MEMORY = "0: Max memory allocated after optimizer step: 3.2 GB 3.8 GB\n"
BATCHES = "Starting epoch 0\nBatch 0: 9.0 seconds\nBatch 10: 5.0 seconds\n"
ENDED = "Epoch 0 completed. Loss: 0.5\n"
RECORDS = "".join(
    step_record(epoch=e, i=i, rank=0, dt=0.2, loss=0.5, samples=4) for e in (0, 1) for i in range(4)
)
PEAKS = "rank 0 torch.cuda.memory_reserved: 2.0GB\n[lab] run peak_reserved_gb=3.5\n"


def test_what_is_a_number() -> None:
    good = {b"5.": 5, b" -1.5e-03": -0.0015, b"7": 7, b"+2.5": 2.5, b"inf": math.inf}
    assert {raw: number(raw) for raw in good} == good
    for raw in (b"4.9.5", b".5", b"1_0", b"", b"0x1", b"1e", b"nano", b"9" * 400, None):
        assert number(raw) is None


@pytest.mark.parametrize("loss", ["4.9.1", "4.9.", "1..2", "5e", "x"])
def test_a_loss_that_is_no_number_is_not_known(tmp_path: Path, loss: str) -> None:
    found = foms(tmp_path, {"log_rank0.txt": GOOD.replace("tensor(0.5", f"tensor({loss}")})
    assert found.reasons["final_loss"] is Reason.NO_LOSS_LINES
    assert found.integrity.steady_steps == 3
    bars = BARS.replace("Loss: 5.0,", f"Loss: {loss},").replace("Loss: 3.0,", f"Loss: {loss},")
    found = foms(tmp_path / "bars", {"log_rank0.txt": bars, **RUN})
    assert [(point.epoch, point.loss) for point in found.loss_curve] == [(1, 4.0)]
    assert found.epoch_time_s == pytest.approx(9)


@pytest.mark.parametrize("rate", [".it/s", "?it/s", "1.2.3it/s", "0.00it/s", "1.0.s/it"])
def test_a_rate_that_is_no_number_ends_no_epoch(tmp_path: Path, rate: str) -> None:
    text = BARS + start_bar(9) + end_bar(9, rate) + epoch_line(3, 1.0)
    assert foms(tmp_path, {"log_rank0.txt": text, **RUN}).epoch_time_s == pytest.approx(9)


@pytest.mark.parametrize("seconds", ["0.0.2", "0.2.", ".2"])
def test_a_time_that_is_no_number_is_not_known(tmp_path: Path, seconds: str) -> None:
    text = GOOD.replace("in 0.2500", f"in {seconds}")
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert found.reasons["step_time_s"] is Reason.NO_STEP_TIMES_IN_LOG


def test_times_of_zero_are_no_times(tmp_path: Path) -> None:
    found = foms(tmp_path, {"log_rank0.txt": GOOD.replace("in 0.2500", "in 0.0000")})
    assert found.reasons["throughput_samples_per_s"] is Reason.NO_STEP_TIMES_IN_LOG
    assert found.reasons["step_time_s"] is Reason.NO_STEP_TIMES_IN_LOG
    assert found.problems[0].what == (
        "8 step times not used: zero, negative or out of range; expected seconds"
    )


def test_negative_times_are_no_times(tmp_path: Path) -> None:
    text = GOOD.replace("in 0.2500", "in -0.2500", 6)
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert found.steady_step_times_s == [0.25] * 2
    assert found.throughput_samples_per_s == pytest.approx(8 * 8 / 0.25)
    assert found.problems[0].what.startswith("6 step times not used")
    records = RECORDS.replace("dt=0.2", "dt=-0.2", 5).replace("dt=0.2", "dt=0", 1)
    found = foms(tmp_path / "records", {"log_rank0.txt": records, "meta.json": '{"ranks": 1}'})
    assert found.steady_step_times_s == [0.2] * 2
    assert found.problems[0].what.startswith("6 step times not used")


@pytest.mark.parametrize("loss", ["[nan]", "[-inf]", "nan", "-inf"])
def test_a_non_finite_loss_in_a_vector_of_one_counts(tmp_path: Path, loss: str) -> None:
    text = GOOD.replace("tensor(0.5", f"tensor({loss}", 2)
    found = foms(tmp_path, {"log_rank0.txt": text})
    assert (found.non_finite_count, found.loss_verdict) == (2, LossVerdict.NON_FINITE)


def test_a_vector_of_one_is_a_loss_and_a_longer_one_is_not(tmp_path: Path) -> None:
    one = foms(tmp_path / "1", {"log_rank0.txt": GOOD.replace("tensor(0.5", "tensor([0.5]")})
    assert (one.final_loss, one.non_finite_count) == (0.5, 0)
    two = foms(tmp_path / "2", {"log_rank0.txt": GOOD.replace("tensor(0.5", "tensor([0.5, 0.7]")})
    assert two.reasons["final_loss"] is Reason.NO_LOSS_LINES


@pytest.mark.parametrize("which", ["Val", "Test"])
def test_a_non_finite_validation_loss_counts(tmp_path: Path, which: str) -> None:
    text = BARS.replace(f"{which} Loss: 5.", f"{which} Loss: nan # ", 1)
    found = foms(tmp_path, {"log_rank0.txt": text, **RUN})
    assert (found.non_finite_count, found.loss_verdict) == (1, LossVerdict.NON_FINITE)
    assert found.final_loss == 3.0


@pytest.mark.parametrize("shift", range(40))
def test_no_number_is_cut_where_a_long_stretch_without_a_break_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64)
    text = "x" * (64 * 3 - 40 + shift) + " Epoch: 09, Train Loss: 1.23456789, Val\n"
    assert set(
        parse(tmp_path, "0: Epoch: 00, Train Loss: 5.0, V\n" + text).epoch_losses.items()
    ) <= {
        (0, 5.0),
        (9, 1.23456789),
    }


def test_a_stretch_without_a_break_is_named(tmp_path: Path) -> None:
    found = foms(tmp_path, {"log_rank0.txt": GOOD + "x" * (3 << 20) + "\n"})
    assert found.throughput_samples_per_s == pytest.approx(8 * 8 / 0.25)
    assert found.problems[0].what.endswith("bytes without a line break, not used; expected text")


LOGS = [
    GOOD + PEAKS,
    edm_log([[Step(0.25, 8)] * 3] * 2, ranks=3),
    BARS + MEMORY + "0: Tasks Train Loss: [0.1, 0.2]\n",
    layout() + BATCHES + ENDED,
    "  Total ranks  : 16\n  Batch size   : 8\n" + RECORDS + PEAKS,
    BARS + "Total number of profiled events: 71925 at epoch 1\n",
]
PIECES = st.one_of(
    st.text("0123456789.", min_size=1, max_size=14),
    st.sampled_from(
        [
            "nan",
            "inf",
            "-",
            "-1",
            "e9",
            "1e999",
            "1e-999",
            "9" * 400,
            "[",
            "]",
            "\n",
            "\r",
            "\0",
            "/",
        ]
    ),
    st.text(max_size=3),
)
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 12), PIECES)


def digit_at(text: str, place: float) -> int:
    """Index of a digit: damage to numbers is what finds faults."""
    digits = [at for at, sign in enumerate(text) if sign.isdigit()]
    return digits[min(int(place * len(digits)), len(digits) - 1)] if digits else 0


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(LOGS), st.lists(EDIT, min_size=1, max_size=6), st.booleans())
def test_no_damage_to_a_log_raises(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    edits: list[tuple[float, int, str]],
    everywhere: bool,
) -> None:
    for place, length, piece in edits:
        at = digit_at(text, place)
        if everywhere and length:
            text = text.replace(text[at : at + length], piece)
        else:
            text = text[:at] + piece + text[at + length :]
        text = text[: 1 << 18]
    files = {"config.yaml": orbit2_config(8), "meta.json": '{"ranks": 2}'}
    raw = {"log_rank0.txt": text.encode("utf-8", "surrogatepass")}
    found = foms(tmp_path_factory.mktemp("fuzz"), {**raw, **files})
    assert found.model_dump_json()
    assert all(time > 0 for time in found.steady_step_times_s)
    assert found.throughput_samples_per_s is None or found.throughput_samples_per_s > 0


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["config.json", "config.yaml", "meta.json"]),
    st.lists(EDIT, min_size=1, max_size=4),
)
def test_no_damage_to_what_surrounds_a_log_raises(
    tmp_path_factory: pytest.TempPathFactory, name: str, edits: list[tuple[float, int, str]]
) -> None:
    files = {"config.json": hydragnn_config(4), "config.yaml": orbit2_config(4), **RUN}
    text = files[name]
    for place, length, piece in edits:
        at = digit_at(text, place)
        text = text[:at] + piece + text[at + length :]
    files[name] = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    assert foms(tmp_path_factory.mktemp("fuzz"), {"log_rank0.txt": BARS, **files}).run_id


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"a":' + "1" * 5000 + "}"),
        ("config.json", "[" * 100_000),
        ("config.yaml", "a: 2024-99-99\n"),
        ("config.yaml", "{[1]: 2}\n"),
    ],
)
def test_a_file_that_no_reader_takes_is_one_problem(tmp_path: Path, name: str, text: str) -> None:
    found = foms(tmp_path, {"log_rank0.txt": GOOD, name: text})
    assert [problem.where for problem in found.problems] == [name]
    assert found.throughput_samples_per_s is not None
