"""Running TraceLens's command lines on our traces, and keeping the CSV files they write."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from perfproof.core.command import Ended, run_bounded
from perfproof.core.errors import InputError
from perfproof.core.files import digest_file
from perfproof.schema.traces import Table
from perfproof.tracelens.find import COLLECTIVES, REPORT, TraceLens

_OPTIONS = ("--enable_kernel_summary", "--short_kernel_study")
# Console scripts are found by what they call: their folder need not be on PATH.
_CALL = (
    "import sys; from importlib.metadata import EntryPoint; "
    "sys.exit(EntryPoint('', sys.argv.pop(1), 'console_scripts').load()())"
)
_GZIP = b"\x1f\x8b"


def report_on_rank(
    found: TraceLens, trace: Path, to: Path, out: Path, timeout_s: float
) -> dict[str, Table]:
    """TraceLens's report on one trace: its CSV files by sheet, kept in `out`/`to`.

    Raises InputError where it fails, is too slow or writes no timeline.
    """
    with tempfile.TemporaryDirectory() as scratch:
        link = _link(trace, Path(scratch), 0)
        arguments = ("--profile_json_path", str(link), *_OPTIONS)
        written = _run(found, REPORT, arguments, Path(scratch), trace, timeout_s)
        if not (written / "gpu_timeline.csv").is_file():
            raise InputError(trace.name, "TraceLens wrote no gpu_timeline.csv", "its report")
        return _keep(written, to, out)


def report_on_collectives(
    found: TraceLens, traces: Mapping[int, Path], to: Path, out: Path, timeout_s: float
) -> dict[str, Table]:
    """TraceLens's report over ranks 0 to n - 1. Raises InputError where it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        for rank, trace in traces.items():
            _link(trace, Path(scratch), rank)
        pattern = f"{scratch}/rank*_trace.json*"
        arguments = ("--trace_glob", pattern, "--world_size", str(len(traces)))
        where = Path("traces of all ranks")
        written = _run(found, COLLECTIVES, arguments, Path(scratch), where, timeout_s)
        tables = _keep(written, to, out)
        if not tables:
            raise InputError(where, "TraceLens wrote no CSV file", "its report on collectives")
        return tables


def _link(trace: Path, scratch: Path, rank: int) -> Path:
    """The trace under a name that TraceLens takes: it goes by the ending."""
    with trace.open("rb") as stream:
        ending = ".gz" if stream.read(2) == _GZIP else ""
    link = scratch / f"rank{rank}_trace.json{ending}"
    link.symlink_to(trace.resolve())
    return link


def _run(
    found: TraceLens,
    script: str,
    arguments: tuple[str, ...],
    scratch: Path,
    about: Path,
    timeout_s: float,
) -> Path:
    """Run a console script; the folder of the CSV files that it wrote."""
    entry = found.scripts.get(script)
    if entry is None:
        raise InputError(about.name, f"TraceLens {found.version} has no {script}", "a later one")
    written = scratch / "csv"
    command = [found.python, "-c", _CALL, entry, *arguments, "--output_csvs_dir", str(written)]
    env = {**os.environ, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(scratch)}
    ended = run_bounded(command, scratch, env, timeout_s)
    if ended.code != 0:
        raise InputError(about.name, _fault(ended, scratch, timeout_s), "its report")
    return written


def _fault(ended: Ended, scratch: Path, timeout_s: float) -> str:
    if ended.code is None:
        return f"TraceLens gave no report within {timeout_s:g} s"
    said = ended.last_error.replace(f"{scratch}/", "")[:200]
    return f"TraceLens ended with exit code {ended.code}: {said or 'without a word'}"


def _keep(written: Path, to: Path, out: Path) -> dict[str, Table]:
    """Move the CSV files to `out`/`to`, in place of older ones; their records by sheet."""
    folder = out / to
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tables = {}
    for path in sorted(written.glob("*.csv")) if written.is_dir() else []:
        kept = folder / path.name
        shutil.copyfile(path, kept)
        file = (to / path.name).as_posix()
        tables[path.stem] = Table(file=file, rows=_rows(kept), blake3=digest_file(kept))
    return tables


def _rows(path: Path) -> int:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8", errors="replace", newline="") as stream:
        return max(0, sum(1 for row in csv.reader(stream) if row) - 1)
