"""The reader of `telemetry.csv`."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.telemetry.read import read_telemetry
from tests.telemetry.recorded import HEADER, row


def test_samples_are_sorted_by_gpu_and_time(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([HEADER, row(2, 1), row(1, 1), row(5, 0)]))
    samples = read_telemetry(path).samples
    assert samples["gpu"].tolist() == [0, 1, 1]
    assert samples["unix_ts"].is_monotonic_increasing is False
    assert samples["mem_used_mib"].tolist() == [1005, 1001, 1002]


def test_cells_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("unix_ts,gpu,power_w\n1,0,[N/A]\n2,0,5\nx,0,6\n3,,7\n")
    found = read_telemetry(path)
    assert found.problems == (
        "2 rows without a time or GPU number; expected both",
        "1 of 2 cells of power_w are no numbers; left out",
    )
    assert len(found.samples) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "an empty file"),
        (b"a,b\n1,2\n", "no column unix_ts or gpu"),
        (b"unix_ts,gpu\n", "no row"),
        (b"unix_ts,gpu\nx,y\n", "no row"),
        (b"unix_ts,gpu\n1,0,\n", "no row .*line 2: 3 fields"),
        (b"\xff\xfe\x00\x01", "utf-8"),
        (b"unix_ts,gpu,gpu\n1,0,0\n", "column gpu twice"),
        (b"\x1f\x8b\x08broken", "Compressed|incorrect|Error|invalid|Unknown"),
        (b'unix_ts,gpu\n"1,0\n', "unexpected end"),
    ],
)
def test_what_is_no_telemetry_says_so_in_one_line(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says) as fault:
        read_telemetry(path)
    assert str(path) in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_telemetry(tmp_path / "none.csv")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_gzip_and_byte_order_marks(
    tmp_path: Path, pack: Callable[[bytes], bytes], mark: str
) -> None:
    path = tmp_path / "telemetry.csv.gz"
    path.write_bytes(pack(f"{mark}{HEADER}\n{row(1)}\n".encode()))
    found = read_telemetry(path)
    assert (found.samples["power_w"].tolist(), found.problems) == ([100], ())


def test_a_row_with_other_fields_than_the_header_is_not_used(tmp_path: Path) -> None:
    """Which value is which cannot be known: no column is shifted."""
    path = tmp_path / "t.csv"
    path.write_text("unix_ts,gpu,power_w\n1,0,5\n2,0,6,7\n\n3,0\n4,0,8\n")
    found = read_telemetry(path)
    assert found.samples["power_w"].tolist() == [5, 8]
    assert found.problems == ("line 3: 4 fields, not used; expected 3 (and 1 more rows)",)


@pytest.mark.parametrize(
    ("column", "cell"),
    [("power_w", "inf"), ("power_w", "nan"), ("power_w", "-1"), ("util_gpu_pct", "5000"),
     ("throttle_reasons", "-inf"), ("throttle_reasons", "0.5"), ("throttle_reasons", str(2**63))],
)  # fmt: skip
def test_what_a_column_cannot_hold_does_not_count(tmp_path: Path, column: str, cell: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"unix_ts,gpu,{column}\n1,0,4\n2,0,{cell}\n")
    found = read_telemetry(path)
    assert found.samples[column].dropna().tolist() == [4]
    assert found.problems == (f"1 of 2 cells of {column} are no numbers; left out",)


@pytest.mark.parametrize("gpu", ["inf", "nan", "0.5", "-1", "1e300"])
def test_what_is_no_gpu_number(tmp_path: Path, gpu: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"unix_ts,gpu,power_w\n1,0,4\n2,{gpu},5\n")
    found = read_telemetry(path)
    assert found.samples["gpu"].tolist() == [0]
    assert found.problems == ("1 rows without a time or GPU number; expected both",)
