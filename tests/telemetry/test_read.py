"""The reader of `telemetry.csv`."""

from __future__ import annotations

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
        (b"", "No columns"),
        (b"a,b\n1,2\n", "no column unix_ts or gpu"),
        (b"unix_ts,gpu\n", "no row"),
        (b"unix_ts,gpu\nx,y\n", "no row"),
        (b"\xff\xfe\x00\x01", "utf-8"),
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
