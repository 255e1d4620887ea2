"""Programs that stand where TraceLens would: they take its arguments and do as the test says."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

SCRIPTS = {
    "TraceLens_generate_perf_report_pytorch": "TraceLens.reports:single",
    "TraceLens_generate_multi_rank_collective_report_pytorch": "TraceLens.reports:every",
}
# Importing the package is what finding it must not do.
PACKAGE = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n"
HEAD = """
import argparse, os, pathlib, shutil, sys, time
def arguments():
    cli = argparse.ArgumentParser()
    for name in ("profile_json_path", "output_csvs_dir", "trace_glob", "world_size"):
        cli.add_argument("--" + name)
    for name in ("enable_kernel_summary", "short_kernel_study"):
        cli.add_argument("--" + name, action="store_true")
    given = cli.parse_args()
    os.makedirs(given.output_csvs_dir)
    return given
"""
COPY = """
def single():
    given = arguments()
    assert given.profile_json_path.endswith((".json", ".json.gz"))
    assert os.path.isfile(given.profile_json_path)
    for path in pathlib.Path({source!r}).glob("*.csv"):
        shutil.copy(path, given.output_csvs_dir)
"""
EVERY = """
def every():
    given = arguments()
    import glob
    found = sorted(os.path.basename(p) for p in glob.glob(given.trace_glob))
    assert len(found) == int(given.world_size), found
    open(given.output_csvs_dir + "/nccl_summary_long.csv", "w").write("rank,name\\n")
    open(given.output_csvs_dir + "/nccl_summary_implicit_sync.csv", "w").write("a\\n1\\n")
"""


def interpreter(folder: Path) -> Path:
    """A Python that sees the packages in `folder`/site too."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (folder / "site").mkdir(exist_ok=True)
    return path


def distribution(
    folder: Path, name: str, version: str, scripts: dict[str, str], summary: str = "traces"
) -> None:
    """What pip would have left of an installed project, but for its code."""
    info = folder / "site" / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n"
    )
    lines = [f"{script} = {entry}\n" for script, entry in scripts.items()]
    (info / "entry_points.txt").write_text("[console_scripts]\n" + "".join(lines))


def package(folder: Path, name: str, reports: str = "") -> Path:
    """A package's folder."""
    path = folder / "site" / name
    path.mkdir(parents=True)
    (path / "__init__.py").write_text(PACKAGE)
    (path / "reports.py").write_text(HEAD + reports)
    return path


def tracelens(folder: Path, reports: str) -> Path:
    """An interpreter with a TraceLens whose reports are made by this code."""
    python = interpreter(folder)
    package(folder, "TraceLens", reports)
    distribution(folder, "TraceLens", "0.1.0", SCRIPTS)
    return python


def unrelated(folder: Path) -> Path:
    """An interpreter with the other project of the name."""
    python = interpreter(folder)
    package(folder, "tracelens")
    distribution(folder, "tracelens", "0.7.0", {"tracelens": "tracelens.cli:main"}, "agents")
    return python
