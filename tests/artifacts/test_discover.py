"""Which files of a directory belong to a run, and as what."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.artifacts.discover import discover, rank_of, role_of
from perfproof.core.errors import InputError
from perfproof.schema.run import Role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("manifest.json", Role.MANIFEST),
        ("log_rank0.txt", Role.LOG),
        ("hydragnn-train-7187.out", Role.LOG),
        ("telemetry.csv", Role.TELEMETRY),
        ("config.yaml", Role.CONFIG),
        ("recipe.json", Role.CONFIG),
        ("meta.json", Role.META),
        ("node_health_probe.txt", Role.NODE_PROBE),
        ("trace_rank0.json.gz", Role.TRACE),
        ("host_12.17.pt.trace.json", Role.TRACE),
        ("foms.json", None),
        ("inventory.json", None),
        ("record.json", None),
        ("combined_report.json", None),
        ("notes.txt", None),
        (".hidden.json", None),
    ],
)
def test_role_follows_from_the_name(name: str, role: Role | None) -> None:
    assert role_of(Path("run") / name) is role


@pytest.mark.parametrize(
    ("name", "rank"),
    [("log_rank0.txt", 0), ("sampled_rank-12.json.gz", 12), ("rank3.pt.trace.json", 3)],
)
def test_rank_is_read_from_the_name(name: str, rank: int) -> None:
    assert rank_of(Path(name)) == rank


def test_files_that_analysis_wrote_are_not_part_of_the_run(tmp_path: Path) -> None:
    for name in ("log_rank0.txt", "tables/rank-0/x.json", "claims/trace.json", "steps/train.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert [p.name for p, _ in discover(tmp_path).files] == ["log_rank0.txt"]


def test_a_loggers_copy_beside_rank_logs_is_not_counted_twice(tmp_path: Path) -> None:
    for name in ("log_rank0.txt", "run.log"):
        (tmp_path / name).write_text("x")
    assert dict(discover(tmp_path).files) == {
        tmp_path / "log_rank0.txt": Role.LOG,
        tmp_path / "run.log": Role.OTHER,
    }


def test_a_single_log_is_the_log_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("x")
    assert discover(tmp_path).files == [(tmp_path / "run.log", Role.LOG)]


@pytest.mark.parametrize("files", [[], ["notes.txt"], ["manifest.json"]])
def test_a_directory_with_nothing_to_analyse_is_one_clear_line(
    tmp_path: Path, files: list[str]
) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=r"nothing to analyse.*expected a log") as fault:
        discover(tmp_path)
    assert str(tmp_path) in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_missing_directory_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        discover(tmp_path / "absent")


def test_recorded_runs_are_understood(shared_data: Path) -> None:
    run = shared_data / "runs/orbit2/117m_bf16_b8_fsdp2_trace"
    assert {role for _, role in discover(run).files} == {
        Role.LOG,
        Role.TRACE,
        Role.TELEMETRY,
        Role.CONFIG,
        Role.META,
    }


@pytest.mark.parametrize("names", [("log_rank0.txt",) * 2, ("manifest.json", "manifest.json")])
def test_several_runs_in_one_directory_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    for folder, name in zip("ab", names, strict=True):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("x")
        (tmp_path / folder / f"log_rank{ord(folder)}.txt").write_text("x")
    with pytest.raises(InputError, match=rf"several runs \(a/{names[0]} and b/{names[1]}\)"):
        discover(tmp_path)


def test_linked_folders_are_looked_into_once(tmp_path: Path) -> None:
    scratch, run = tmp_path / "scratch", tmp_path / "run"
    scratch.mkdir()
    run.mkdir()
    (scratch / "rank0.pt.trace.json").write_text("{}")
    (run / "traces").symlink_to(scratch)
    (scratch / "back").symlink_to(run)
    assert [p.name for p, _ in discover(run).files] == ["rank0.pt.trace.json"]
