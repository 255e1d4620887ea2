from __future__ import annotations

from pathlib import Path

from perfproof.training.attempts import set_aside


def tree(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def test_each_attempt_keeps_its_own_files(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "steps").mkdir(parents=True)
    (run / "steps" / "launch.log").write_text("the workflow's")
    assert set_aside(run) is None
    (run / "traces").mkdir()
    (run / "traces" / "rank0").write_text("first")
    (run / "manifest.json").write_text("first")
    assert set_aside(run) == 1
    assert set_aside(run) is None
    (run / "manifest.json").write_text("second")
    (run / "recipe.json").write_text("asked")
    assert set_aside(run, keep=[run / "recipe.json"]) == 2
    assert tree(run) == {
        "recipe.json",
        "steps/launch.log",
        "attempts/1/traces/rank0",
        "attempts/1/manifest.json",
        "attempts/2/manifest.json",
    }
    assert (run / "attempts" / "2" / "manifest.json").read_text() == "second"
