"""The ledgers say the truth: rows complete, counts right, everything they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.ledger import ROOT, STAGES, Row, broken, counts, faults, named_tests, rows

LESSONS, PARITY = ROOT / "docs" / "lessons.md", ROOT / "docs" / "parity.md"
LESSON_IDS = [f"{group}{n}" for group, last in (("S", 5), ("L", 31), ("A", 19), ("R", 9))
              for n in range(1, last + 1)]  # fmt: skip
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (ROOT, ROOT / "docs", ROOT / "config")
    for path in folder.glob("*.md")
)
TOP = ("scripts/", "tests/", "config/", "rules/", "docs/", "profiles/", "envs/", "bin/", "agents/",
       "benchmarks/")  # fmt: skip


def test_lessons_are_complete() -> None:
    assert [row.id for row in rows(LESSONS)] == LESSON_IDS


def test_parity_rows_are_complete() -> None:
    assert [row.id for row in rows(PARITY)] == [str(n) for n in range(1, 96)]


def test_lessons_name_what_exists() -> None:
    assert [fault for row in rows(LESSONS) for fault in faults(row, "guarded")] == []


def test_parity_names_what_exists() -> None:
    assert [fault for row in rows(PARITY) for fault in faults(row, "built")] == []


def test_a_guard_is_a_test() -> None:
    kept = [row for row in rows(LESSONS) if row.state in {"guarded", "partly"}]
    assert [row.id for row in kept if not named_tests(row)] == []


def test_lessons_count_themselves() -> None:
    expected = counts(rows(LESSONS), ("guarded", "partly", "planned"))
    assert expected in LESSONS.read_text(encoding="utf-8")


def test_parity_counts_itself() -> None:
    expected = counts(rows(PARITY), ("built", "partly", "planned", "not taken"))
    assert expected in PARITY.read_text(encoding="utf-8")


def test_every_stage_is_described() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    planned = design.partition("## Planned")[2]
    assert set(re.findall(r"^\| (\w+) \|", planned, re.MULTILINE)) - {"stage"} == STAGES


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_paths_that_exist(page: str) -> None:
    spans = re.findall(r"`([^`\n]+)`", (ROOT / page).read_text(encoding="utf-8"))
    paths = {s for s in spans if s.startswith(TOP) and not re.search(r"[<*{\s]", s)}
    assert {path: fault for path in sorted(paths) if (fault := broken(path))} == {}


def test_catalog_file_is_what_the_catalog_reads() -> None:
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) <= {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["report"] is True
    assert not Path(ROOT / "workflow").exists()  # else the catalog looks for the Snakefile there


@pytest.mark.parametrize(
    ("state", "where", "complaint"),
    [
        ("guarded", "", "nothing is named"),
        ("guarded", "`docs/lessons.md`; planned: bundle", "stages named: bundle"),
        ("planned", "later", "stages named: none"),
        ("planned", "planned: someday", "unknown stage someday"),
        ("partly", "`docs/lessons.md`", "stages named: none"),
        ("not taken", "not needed", "needs its reason"),
        ("done", "`docs/lessons.md`", "unknown state"),
        ("guarded", "`docs/no_such_page.md`", "no such file"),
        ("guarded", "`tests/docs/test_ledgers.py::test_gone`", "no test_gone"),
        ("guarded", "`no_such_target`", "neither a path"),
        ("guarded", "`perfproof.core.no_such_module`", "cannot be imported"),
        ("guarded", "`training.no_such_key`", "neither a path"),
    ],
)
def test_a_wrong_row_is_found(state: str, where: str, complaint: str) -> None:
    assert complaint in "; ".join(faults(Row("L1", "text", state, where), "guarded"))


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ("guarded", "`tests/docs/test_ledgers.py::test_a_right_row_passes`"),
        ("partly", "`training.batch_size`; planned: autotune (x, y), telemetry (z)"),
        ("planned", "planned: bundle"),
        ("not taken", "not taken: because"),
    ],
)
def test_a_right_row_passes(state: str, where: str) -> None:
    assert faults(Row("L1", "text", state, where), "guarded") == []
