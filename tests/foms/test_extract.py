"""The step on its command line, with input that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.core.files import canonical_json, read_record
from perfproof.foms.extract import main
from perfproof.schema.base import Reason
from perfproof.schema.foms import Foms
from tests.foms.logs import Step, edm_log, foms, inventory, orbit2_config


def extract(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Foms, list[str]]:
    listed, out = root.parent / "inventory.json", root.parent / "foms.json"
    listed.write_text(inventory(root).model_dump_json())
    monkeypatch.setattr("sys.argv", ["x", "--inventory", str(listed), "--out", str(out)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    found = read_record(out, Foms)
    assert out.read_text() == canonical_json(found.model_dump(mode="json", by_alias=True))
    return found, capsys.readouterr().out.splitlines()


def test_a_good_run_is_ok(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "run"
    text = edm_log([[Step(1.0, 8, loss)] * 4 for loss in (2, 1)])
    direct = foms(root, {"log_rank0.txt": text, "config.yaml": orbit2_config(8)})
    found, lines = extract(root, monkeypatch, capsys)
    assert found == direct
    assert lines == [
        "STATUS=ok; reason=64 samples/s (realised_batch_over_step_time, 3 steady steps)"
    ]


STEPS = edm_log([[Step(1.0, 8)] * 6])


@pytest.mark.parametrize(
    ("log", "reason", "problem"),
    [
        (b"", Reason.NO_STEP_LINES, "log_rank0.txt: empty file; expected the trainer's output"),
        (
            bytes(9999),
            Reason.NO_STEP_LINES,
            "log_rank0.txt: 9999 NUL bytes (no training line in it)",
        ),
        (b"\xff\xfe\x80" * 999, Reason.NO_STEP_LINES, "ends in the middle of a line"),
        (
            b"usage: train.py\n",
            Reason.NO_STEP_LINES,
            "log_rank0.txt: no throughput (no_step_lines)",
        ),
        (
            edm_log([[Step(1.0, 8)] * 2]).encode(),
            Reason.NO_STEADY_STEP,
            "log_rank0.txt: no throughput (no_steady_step): 2 steps and 0 epochs in the log; "
            "expected steady, unprofiled ones and their batch",
        ),
    ],
)
def test_a_log_without_a_figure_is_partial_and_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log: bytes,
    reason: Reason,
    problem: str,
) -> None:
    root = tmp_path / "run"
    foms(root, {"log_rank0.txt": log})
    found, lines = extract(root, monkeypatch, capsys)
    assert found.reasons["throughput_samples_per_s"] is reason
    assert any(problem in line for line in lines[:-1])
    assert lines[-1].startswith("STATUS=partial; reason=log_rank0.txt: ")


def test_a_truncated_log_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "run"
    foms(root, {"log_rank0.txt": STEPS[: STEPS.rindex("tic4-tic1") + 14]})
    found, lines = extract(root, monkeypatch, capsys)
    assert found.steady_step_times_s == [1.0, 1.0]
    assert lines[0].startswith("log_rank0.txt: ends in the middle of a line, which was not used")
    assert lines[-1].startswith("STATUS=partial")


def test_faults_around_the_log_do_not_take_the_figure_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "run"
    foms(root, {"log_rank0.txt": STEPS, "manifest.json": "{}", "config.yaml": "a: ["})
    found, lines = extract(root, monkeypatch, capsys)
    assert found.throughput_samples_per_s == pytest.approx(64)
    assert lines[0].startswith("manifest.json: run_id: found nothing; expected Field required")
    assert lines[1].startswith("config.yaml: not YAML")
    assert lines[-1].endswith("(and 1 more)")


def test_no_log_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "run"
    foms(root, {"config.yaml": orbit2_config(8)})
    found, lines = extract(root, monkeypatch, capsys)
    assert found.reasons["throughput_samples_per_s"] is Reason.NO_LOG
    assert lines[0] == "run: no training log that can be read; expected the trainer's output"


def test_a_log_that_was_listed_and_is_gone(tmp_path: Path) -> None:
    root = tmp_path / "run"
    foms(root, {"log_rank0.txt": STEPS})
    listed = inventory(root)
    (root / "log_rank0.txt").unlink()
    from perfproof.foms.assemble import foms_of

    found = foms_of(listed)
    assert found.problems[0].what == "cannot be read (No such file or directory); expected a log"
    assert found.reasons["step_time_s"] is Reason.NO_LOG


def test_a_bad_inventory_fails_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "inventory.json"
    listed.write_text('{"run_id": "r", "root": "x", "artefacts": []}')
    monkeypatch.setattr("sys.argv", ["x", "--inventory", str(listed), "--out", str(tmp_path / "o")])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert "inventory.json: artifacts: found nothing" in capsys.readouterr().out
    assert not (tmp_path / "o").exists()
