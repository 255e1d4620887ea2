"""A step that fails must fail its rule, through `| tee log` and all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.tree import snakemake

pytestmark = pytest.mark.workflow


def test_a_run_with_nothing_usable_ends_the_workflow_with_its_reason(
    tree: Path, tmp_path: Path
) -> None:
    run = tmp_path / "junk"
    run.mkdir()
    (run / "trace_rank0.json").write_text("not a trace")
    result = snakemake(tree, "perf_report", "--config", f"artifacts={run}")
    output = result.stdout + result.stderr
    assert result.returncode == 1
    assert "Error in rule combine" in output
    assert "STATUS=fail; reason=" in output
    # Without pipefail the rule would pass, and only its missing output would be noticed.
    assert "MissingOutputException" not in output
    assert (tree / "results/artifacts/junk/steps/combine.log").is_file()
