from __future__ import annotations

import re

import pytest
import yaml
from pydantic import ValidationError

from perfproof.core.errors import InputError
from perfproof.schema.gpus import GpuPeaks
from perfproof.traces.peaks import SHIPPED, load_peaks, peaks_of

KNOWN = load_peaks()
# Each doubling of width halves the rate, or less: matrix units are never slower for less.
ORDER = ("float64", "float32", "tf32", "bfloat16", "float8", "float4")


def test_every_gpu_of_the_list_is_there():
    wanted = {"mi250x", "mi300x", "mi325x", "mi355x", "h100", "h200", "b200"}
    assert wanted | {"a100_40gb", "a100_80gb"} == {peaks.gpu for peaks in KNOWN}


@pytest.mark.parametrize("peaks", KNOWN, ids=lambda peaks: peaks.gpu)
def test_narrower_types_are_not_slower(peaks):
    rates = [peaks.tflops[kind].value for kind in ORDER if kind in peaks.tflops]
    assert rates == sorted(rates)
    assert peaks.tflops["float16"].value == peaks.tflops["bfloat16"].value
    assert peaks.tflops["int8"].value >= peaks.tflops["bfloat16"].value


@pytest.mark.parametrize(
    ("gpu", "units", "clock_ghz", "per_clock"),
    [
        ("mi250x", 110, 1.7, {"bfloat16": 1024, "float64": 256, "float64_vector": 128}),
        ("mi300x", 304, 2.1, {"bfloat16": 2048, "float8": 4096, "tf32": 1024, "float64": 256}),
        ("mi325x", 304, 2.1, {"bfloat16": 2048, "float8": 4096, "float32": 256}),
        ("mi355x", 256, 2.4, {"bfloat16": 4096, "float8": 8192, "float64": 128, "float32": 256}),
        ("a100_80gb", 108, 1.41, {"bfloat16": 2048, "tf32": 1024, "float32": 128}),
        ("h100", 132, 1.83, {"bfloat16": 4096, "tf32": 2048, "float8": 8192}),
    ],
)
def test_rates_follow_from_units_and_clock(gpu, units, clock_ghz, per_clock):
    peaks = next(peaks for peaks in KNOWN if peaks.gpu == gpu)
    for kind, operations in per_clock.items():
        computed = units * clock_ghz * operations / 1000
        assert peaks.tflops[kind].value == pytest.approx(computed, rel=0.003), kind


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA A100-PG509-200", "a100_40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100_80gb"),
        ("AMD Instinct MI300X VF", "mi300x"),
        ("amd instinct mi355x", "mi355x"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H200 NVL", None),
        ("AMD Instinct MI210", None),
        ("AMD Radeon Graphics", None),
    ],
)
def test_by_name(name, gpu):
    found = peaks_of((name,), KNOWN)
    assert (found and found.gpu) == gpu


def test_no_name_several_names_several_entries():
    assert peaks_of((), KNOWN) is None
    assert peaks_of(("NVIDIA H100 80GB HBM3", "NVIDIA H200"), KNOWN) is None
    assert peaks_of(("NVIDIA H200",), [*KNOWN, *KNOWN]) is None


def test_every_number_has_a_source():
    for path in sorted(SHIPPED.glob("*.yaml")):
        text = path.read_text()
        assert len(re.findall("value:", text)) == len(re.findall("source:", text))


def test_bad_entries_are_refused(tmp_path):
    data = yaml.safe_load((SHIPPED / "h200.yaml").read_text())
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(InputError, match="gpu: 'h200'; expected 'other'"):
        load_peaks(tmp_path)
    with pytest.raises(ValidationError, match="not a regular expression"):
        GpuPeaks.model_validate({**data, "names": ["("]})
    del data["tflops"]["float64"]
    with pytest.raises(ValidationError, match="float64_vector without float64"):
        GpuPeaks.model_validate(data)
