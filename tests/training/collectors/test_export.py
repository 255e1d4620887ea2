from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.core.series import EXPORT_FILE, read_export
from perfproof.training.collectors.export import export
from perfproof.training.collectors.reading import card
from perfproof.training.collectors.samples import SampleFile
from perfproof.training.collectors.store import find_server


def sampled(folder: Path) -> Path:
    """Two nodes of two cards, one of which vanishes; awkward labels, long numbers."""
    for number, node in enumerate(("a1", "a2")):
        out = SampleFile(folder / f"samples-{node}.jsonl", {"instance": node})
        for tick in range(20):
            cards = 2 if tick < 15 or node == "a1" else 1
            readings = [
                ("power", card(n, type='H "2" ü\\'), 100.123456 * tick + n) for n in range(cards)
            ]
            readings.append(("energy", card(0), 26_181_130.255 + tick / 3))
            readings.append(("large", card(0), 9_999_999_999.123456789 + tick / 7))
            readings.append(("bytes", card(0), 4_503_599_627_370_497.0 + tick))
            out.append(1_796_053_011_000 + 1000 * tick + number, readings)
        out.close()
    return folder


def test_nodes_are_merged_and_what_they_left_is_gone(tmp_path: Path) -> None:
    done = export(sampled(tmp_path))
    assert (done.series, done.ticks, done.problems) == (10, {"a1": 20, "a2": 20}, ())
    assert [path.name for path in tmp_path.iterdir()] == [EXPORT_FILE]
    found = {
        (s.metric["__name__"], s.metric["instance"], s.metric["card"]): s
        for s in read_export(tmp_path / EXPORT_FILE)
    }
    assert len(found["power", "a2", "1"].times_ms) == 15
    assert found["power", "a1", "1"].values[2] == 201.246912
    assert found["power", "a2", "0"].times_ms[0] == 1_796_053_011_001


def test_through_a_store_the_file_is_the_same(tmp_path: Path) -> None:
    program = find_server()
    if program is None:
        pytest.skip("no victoria-metrics here (tests/cluster/packages.txt names the package)")
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    assert not export(sampled(tmp_path / "1")).through_store
    done = export(sampled(tmp_path / "2"), program)
    assert (done.through_store, done.problems) == (True, ())
    assert not (tmp_path / "2" / "store").exists()
    direct, stored = (tmp_path / n / EXPORT_FILE for n in ("1", "2"))
    assert direct.read_bytes() == stored.read_bytes()


def test_a_store_that_fails_costs_no_sample(tmp_path: Path) -> None:
    program = tmp_path / "victoria-metrics"
    program.write_text("#!/bin/sh\necho out of order\nexit 1\n")
    program.chmod(0o755)
    folder = tmp_path / "run"
    folder.mkdir()
    done = export(sampled(folder), program)
    assert (done.series, done.through_store) == (10, False)
    assert "out of order" in done.problems[0]


def test_what_a_store_changes_is_not_taken_from_it(tmp_path: Path) -> None:
    program = find_server()
    if program is None:
        pytest.skip("no victoria-metrics here (tests/cluster/packages.txt names the package)")
    values = [0.123456, 2.0**52 + 1]
    out = SampleFile(tmp_path / "samples-a1.jsonl", {"instance": "a1"})
    for tick, value in enumerate(values):
        out.append(1_796_053_011_000 + tick, [("mixed", (), value)])
    out.close()
    done = export(tmp_path, program)
    assert not done.through_store
    assert "1 of 1 series did not come back as they were" in done.problems[0]
    assert list(read_export(tmp_path / EXPORT_FILE)[0].values) == values


def test_no_samples_make_no_file(tmp_path: Path) -> None:
    (tmp_path / "samples-a1.jsonl").touch()
    assert export(tmp_path).series == 0
    assert list(tmp_path.iterdir()) == []


def test_samples_of_a_killed_launch_can_be_exported_later(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "perfproof.training.collectors.export", "--run-dir"]
    folder = tmp_path / "telemetry"
    folder.mkdir()
    sampled(folder)
    done = subprocess.run([*words, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "STATUS=ok; reason=10 series; samples: a1 20, a2 20\n"
    again = subprocess.run([*words, str(tmp_path)], capture_output=True, text=True)
    assert again.returncode == 1
    assert "no samples-*.jsonl; expected samples that a collector left" in again.stdout
