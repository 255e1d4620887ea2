"""What the loop learns from one run: `python -m perfproof.levers.observe`."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path

from perfproof.core.config import load_cluster, read_catalog
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.foms.compare import METRICS
from perfproof.levers.faults import fault_of
from perfproof.levers.result import METRIC, Seen, result_of
from perfproof.schema.claims import VerifiedSet
from perfproof.schema.cluster import RunEnding
from perfproof.schema.foms import Foms
from perfproof.schema.loop import LoopSpec, Measurement, Result
from perfproof.schema.run import Manifest
from perfproof.schema.traces import TraceSummary

VERIFIED = ("verified/trace.json", "verified/telemetry.json")
_LOGS = "log_rank*.txt"


def observe(
    run_dir: Path,
    asked: Measurement,
    spec: LoopSpec,
    levers: Path,
    against: Path | None = None,
    *,
    with_claims: bool = False,
) -> Result:
    """The result of the run in `run_dir`, held against the run in `against`.

    `levers` is the catalog, `config/levers/<model>.yaml`, beside which the clusters lie.
    """
    verified = [run_dir / name for name in VERIFIED] if with_claims else []
    return _observed(run_dir, asked, levers, against, verified, spec.metric)


def _observed(
    run_dir: Path,
    asked: Measurement,
    levers: Path,
    against: Path | None,
    verified: Iterable[Path],
    metric: str,
) -> Result:
    seen = read_seen(run_dir)
    found = seen.manifest.resolved
    if found.trial != asked.trial:
        where = run_dir / "manifest.json"
        raise InputError(where, f"trial '{found.trial}'", f"'{asked.trial}'", "resolved.trial")
    return result_of(
        asked,
        seen,
        read_catalog(levers),
        load_cluster(levers.resolve().parents[2], found.cluster),
        against=read_seen(against) if against else None,
        verified=[read_record(path, VerifiedSet) for path in verified],
        metric=metric,
    )


def read_seen(run_dir: Path) -> Seen:
    """The records in a run's directory. There must be a manifest."""
    ending, foms = run_dir / "ending.json", run_dir / "foms.json"
    tries = sorted(run_dir.glob("attempts/*/manifest.json"))
    return Seen(
        manifest=read_record(run_dir / "manifest.json", Manifest),
        ending=read_record(ending, RunEnding) if ending.is_file() else None,
        foms=read_record(foms, Foms) if foms.is_file() else None,
        kernels=_kernel_names(run_dir),
        silent=not any(path.stat().st_size for path in run_dir.glob(_LOGS)),
        attempts=[read_record(path, Manifest) for path in tries],
    )


def _kernel_names(run_dir: Path) -> frozenset[str] | None:
    """Names of the kernels of the lowest traced rank; None without a trace of a GPU."""
    summary = run_dir / "tables" / "trace_summary.json"
    if not summary.is_file():
        return None
    ranks = read_record(summary, TraceSummary).ranks
    table = ranks[0].tables.get("kernel_summary") if ranks else None
    if table is None:
        return None
    with (run_dir / table.file).open(encoding="utf-8", newline="") as stream:
        return frozenset(row["Kernel name"] for row in csv.DictReader(stream))


def main() -> None:
    """Command line."""
    cli = parser("Say what a loop learns from one run.")
    cli.add_argument("--run-dir", type=Path, required=True, help="the run")
    cli.add_argument("--against", type=Path, help="run whose integrity it must share")
    cli.add_argument("--levers", type=Path, required=True, help="config/levers/<model>.yaml")
    cli.add_argument("--verified", type=Path, nargs="*", default=[], help="verified claims")
    cli.add_argument("--metric", choices=sorted(METRICS), default=METRIC, help="figure to take")
    cli.add_argument("--trial", required=True, help="trial that was asked for")
    cli.add_argument("--rep", type=int, required=True, help="its repetition")
    cli.add_argument("--out", type=Path, required=True, help="result, JSON")
    run(_step, cli.parse_args())


def _step(arguments: argparse.Namespace) -> Status:
    asked = Measurement(trial=arguments.trial, rep=arguments.rep)
    result = _observed(
        arguments.run_dir,
        asked,
        arguments.levers,
        arguments.against,
        arguments.verified,
        arguments.metric,
    )
    write_record(arguments.out, result)
    if result.ending != "measured":
        return Status("partial", f"{result.cause}: {fault_of(str(result.cause)).meaning}")
    differs = f"; differs: {'; '.join(result.differs)}" if result.differs else ""
    value = result.reasons.get("value") or f"{result.value:.6g}"
    return Status("ok", f"{arguments.metric} {value}{differs}")


if __name__ == "__main__":
    main()
