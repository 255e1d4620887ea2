"""Make the one portable file of a run's samples from what its collectors left, nodes merged.

`python -m perfproof.training.collectors.export --run-dir DIR` does so for a run whose launcher was
killed before it could.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.series import EXPORT_FILE, Series, from_line, line, merged, write_export
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.core.victoria import StoreError
from perfproof.training.collectors import FOLDER
from perfproof.training.collectors.loading import PATTERN, Loaded, load
from perfproof.training.collectors.store import find_server, store


@dataclass(frozen=True)
class Exported:
    """What became of the samples. `ticks`: by node, how many times it was sampled."""

    series: int
    ticks: dict[str, int]
    through_store: bool
    problems: tuple[str, ...]


def export(folder: Path, program: Path | None = None) -> Exported:
    """Write `export.jsonl.gz` in `folder` and remove what it was made from.

    With `program`, a VictoriaMetrics server, samples pass through it; the file is the same. Where
    the server fails they do not, and that is told: samples are never lost for want of a store.
    """
    found = load(folder)
    problems = list(found.problems)
    series, stored = found.series, False
    if program and found.series:
        try:
            series, stored = _through(program, folder, found), True
        except (StoreError, OSError, ValueError) as fault:
            problems.append(f"samples did not pass through the store: {fault}")
    count = write_export(folder / EXPORT_FILE, series) if found.series else 0
    for path in folder.glob(PATTERN):
        path.unlink()
    return Exported(count, found.ticks(), stored, tuple(problems))


def _through(program: Path, folder: Path, found: Loaded) -> list[Series]:
    """What the store gives back, where that is what was given to it.

    It keeps the numbers of a stretch of samples with one common precision.
    """
    sent = merged(found.series)
    lines = [line(one) for one in sent]
    with store(program, folder) as server:
        server.load(f"{text}\n".encode("utf-8", "backslashreplace") for text in lines)
        back = merged(from_line(text) for text in server.export())
    changed = set(lines) - {line(one) for one in back}
    if changed:
        raise ValueError(f"{len(changed)} of {len(lines)} series did not come back as they were")
    return back


def _step(arguments: argparse.Namespace) -> Status:
    folder = arguments.run_dir / FOLDER
    if not any(folder.glob(PATTERN)):
        raise InputError(folder, f"no {PATTERN}", "samples that a collector left")
    done = export(folder, find_server(arguments.victoria_metrics))
    nodes = ", ".join(f"{node} {count}" for node, count in done.ticks.items())
    return ok_or_partial(list(done.problems), f"{done.series} series; samples: {nodes}")


def main() -> None:
    """Command line."""
    cli = parser("Make the portable file of a run's samples.")
    cli.add_argument("--run-dir", type=Path, required=True, help="the run's directory")
    cli.add_argument("--victoria-metrics", default="", help="program of the store; empty: look")
    run(_step, cli.parse_args())


if __name__ == "__main__":
    main()
