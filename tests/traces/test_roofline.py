from __future__ import annotations

import csv

import pytest

from perfproof.traces.columns import read_trace
from perfproof.traces.context import make_context
from perfproof.traces.roofline import COLUMNS, roofline
from tests.conftest import SHARED_DATA
from tests.traces.builder import TraceBuilder
from tests.traces.make import by, context_of, records
from tests.traces.recorded import ENTRIES, read_recorded, short_name

H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
BF16 = ["c10::BFloat16"] * 2
REFERENCE = SHARED_DATA / "tracelens-output"
# Recorded traces with shapes, and how many of TraceLens's rows there are to compare.
WITH_SHAPES = {
    "h100_bert-small": 5,
    "h100_owlv2": 19,
    "mi250_minitoy_train": 2,
    "mi300_bert-small": 5,
    "mi300_resnet_act_checkpoint": 35,
}


def mm(trace, start, dur, m, n, k, types=BF16, kernel="gemm_kernel", op="aten::mm"):
    args = {"Input Dims": [[m, k], [k, n]], "Input type": types}
    trace.op(op, start, 10, args=args)
    trace.kernel(kernel, start + 20, dur, launched=start + 5)


def test_achieved_rates_and_shares_of_the_peak():
    trace = TraceBuilder(**H100)
    for start in (100, 1100):
        mm(trace, start, 100, 4096, 4096, 4096)
    (row,) = records(roofline(context_of(trace)))
    flops, moved = 2 * 4096**3, 3 * 4096**2 * 2
    assert (row["op"], row["category"], row["type"], row["count"]) == (
        "aten::mm",
        "GEMM",
        "bfloat16",
        2,
    )
    assert row["input_dims"] == "((4096, 4096), (4096, 4096))"
    assert (row["kernel_us"], row["mean_us"]) == (200, 100)
    assert row["gflop"] == flops / 1e9
    assert row["tflop_s"] == pytest.approx(flops / 100e-6 / 1e12)
    assert row["gb_s"] == pytest.approx(moved / 100e-6 / 1e9)
    assert (row["gpu"], row["peak_tflop_s"], row["peak_gb_s"]) == ("h100", 989.4, 3350)
    assert row["tflop_s_share"] == pytest.approx(row["tflop_s"] / 989.4)
    assert row["gb_s_share"] == pytest.approx(row["gb_s"] / 3350)
    assert (row["bound_by"], row["reason"]) == ("compute", None)
    assert row["roofline_share"] == row["tflop_s_share"]


def test_a_thin_product_is_bound_by_memory():
    trace = TraceBuilder(**H100)
    mm(trace, 100, 10, 1, 4096, 4096)
    (row,) = records(roofline(context_of(trace)))
    assert (row["bound_by"], row["roofline_share"]) == ("memory", row["gb_s_share"])


@pytest.mark.parametrize(
    ("kernel", "kind", "peak"),
    [("cutlass_80_tensorop_s1688gemm_128x128", "tf32", 494.7), ("sgemm_128x64", "float32", 67)],
)
def test_tensor_float_32_by_the_kernel(kernel, kind, peak):
    trace = TraceBuilder(**H100)
    mm(trace, 100, 10, 64, 64, 64, ["float", "float"], kernel)
    (row,) = records(roofline(context_of(trace)))
    assert (row["type"], row["peak_tflop_s"]) == (kind, peak)


def test_reasons_for_nulls():
    trace = TraceBuilder(**H100)
    mm(trace, 100, 10, 8, 8, 8, ["c10::complex<float>"] * 2)
    mm(trace, 300, 0, 16, 16, 16)
    trace.op("aten::addmm", 500, 10)
    trace.kernel("gemm_kernel", 520, 5, launched=505)
    args = {"Input Dims": [[2, 2, 2], [3, 2, 2]], "Input type": BF16}
    trace.op("aten::bmm", 700, 10, args=args)
    trace.kernel("gemm_kernel", 720, 5, launched=705)
    rows = records(roofline(context_of(trace)))
    assert {(row["op"], row["reason"]) for row in rows} == {
        ("aten::mm", "unknown_type"),
        ("aten::mm", "no_time"),
        ("aten::addmm", "no_shapes"),
        ("aten::bmm", "odd_shapes"),
    }
    for row in rows:
        assert row["roofline_share"] is None


@pytest.mark.parametrize(
    ("names", "types", "reason"),
    [
        ([], BF16, "device_not_recorded"),
        (["Some GPU"], BF16, "unknown_device"),
        (["AMD Instinct MI250X"], ["c10::Float8_e4m3fn"] * 2, "no_peak_of_type"),
    ],
)
def test_achieved_rates_without_peaks(names, types, reason):
    devices = [{"id": at, "name": name} for at, name in enumerate(names)]
    trace = TraceBuilder(deviceProperties=devices)
    mm(trace, 100, 10, 64, 64, 64, types)
    (row,) = records(roofline(context_of(trace)))
    assert row["tflop_s"] == pytest.approx(2 * 64**3 / 10e-6 / 1e12)
    assert (row["peak_tflop_s"], row["bound_by"], row["reason"]) == (None, None, reason)


def test_the_outermost_operation_counts_with_all_inside():
    trace = TraceBuilder(**H100)
    shapes = [[1, 3, 8, 8], [4, 3, 3, 3], []]
    concrete = ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"]
    args = {"Input Dims": shapes, "Input type": [*BF16, ""], "Concrete Inputs": concrete}
    trace.op("aten::convolution", 100, 50, args=args)
    inner = {"Input Dims": [[36, 27], [27, 4]], "Input type": BF16}
    trace.op("aten::mm", 110, 20, args=inner)
    trace.kernel("gemm_kernel", 200, 10, launched=115)
    trace.kernel("im2col_kernel", 220, 5, launched=135)
    rows = by(roofline(context_of(trace)), "op")
    assert set(rows) == {"aten::convolution"}
    assert rows["aten::convolution"]["kernel_us"] == 15
    assert rows["aten::convolution"]["gflop"] == 2 * 36 * 27 * 4 / 1e9


def test_other_operations_have_no_row():
    trace = TraceBuilder()
    trace.op("aten::add", 100, 10)
    trace.kernel("add_kernel", 120, 5, launched=105)
    table = roofline(context_of(trace))
    assert (table.columns, table.rows) == (COLUMNS, [])


@pytest.mark.parametrize("name", WITH_SHAPES)
def test_operations_of_tracelens(shared_data, name):
    """To 1 %, but for gradients that were not asked for: TraceLens counts them all the same."""
    entry = next(entry for entry in ENTRIES if short_name(entry) == name)
    ours = records(read_recorded(entry).tables["roofline"])
    rows = {(r["op"], r["input_dims"], r["concrete_inputs"] or ""): r for r in ours}
    shapes = {key[:2]: row for key, row in rows.items()}
    with (REFERENCE / name / "unified_perf_summary.csv").open(newline="") as stream:
        theirs = [row for row in csv.DictReader(stream) if row["GFLOPS"]]
    compared = 0
    for row in theirs:
        key = (row["name"], row["Input Dims"])
        if key not in shapes:
            assert row["op category"] not in ("GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd"), key
            continue
        mine, compared = rows.get((*key, row["Concrete Inputs"]), shapes[key]), compared + 1
        half = "[False, True, False]" in row["Concrete Inputs"]
        assert mine["gflop"] * (2 if half else 1) == pytest.approx(float(row["GFLOPS"]), rel=0.01)
        # TraceLens reads the output's gradient once for each gradient; the least is once.
        moved = float(row["Data Moved (MB)"]) * 2**20 / 1e6
        assert mine["mbyte"] <= moved * 1.0001
        if row["op category"] != "CONV_bwd":
            assert mine["mbyte"] == pytest.approx(moved, rel=0.01)
    assert compared == WITH_SHAPES[name]


def test_recorded_on_h200(shared_data):
    """Large matrix products come near the peak, and nothing above it."""
    path = shared_data / "runs" / "orbit2" / "117m_bf16_b8_1gpu_shapes" / "trace_rank0.json.gz"
    if not path.is_file():
        pytest.skip(f"no recorded trace at {path}")
    rows = records(roofline(make_context(read_trace(path, "t"), 0)))
    assert len(rows) == 32
    assert {row["gpu"] for row in rows} == {"h200"}
    assert {row["reason"] for row in rows} == {None}
    assert all(0 < row["roofline_share"] <= 1 for row in rows)
    large = [row for row in rows if row["op"] == "aten::mm" and row["gflop"] > 200]
    assert large
    assert all(row["tflop_s_share"] > 0.7 for row in large)
