"""Find out how a run ended and write it down: `python -m perfproof.cluster.ending`."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from perfproof.cluster import scheduler, utc
from perfproof.cluster.states import final_state
from perfproof.cluster.waiting import Deadlines, dated
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.schema.cluster import EndState, RunEnding
from perfproof.schema.run import Manifest

_TAIL_BYTES = 32_768
_POLL_S = 5.0


def log_tail(run_dir: Path) -> str:
    """The ends of all ranks' logs in rank order, then of what the launcher itself printed."""
    logs = sorted(run_dir.glob("log_rank*.txt"), key=lambda p: (len(p.name), p.name))
    return "\n".join(end_of(path) for path in [*logs, run_dir / "launcher.txt"] if path.is_file())


def end_of(path: Path) -> str:
    """The end of a log."""
    with path.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - _TAIL_BYTES))
        return stream.read().decode(errors="replace")


def manifest_of(run_dir: Path) -> Manifest | None:
    """The run's manifest, or None where it has not written one."""
    path = run_dir / "manifest.json"
    return read_record(path, Manifest) if path.is_file() else None


def wait_for_ending(
    run_dir: Path, job_id: str | None, deadlines: Deadlines, wait_s: float
) -> RunEnding | None:
    """The run's ending, asked for until it is settled or `wait_s` are over."""
    seen: scheduler.JobView | None = None
    deadline = time.monotonic() + wait_s
    while True:
        own, now = manifest_of(run_dir), utc.now()
        wanted = job_id or (own.slurm_job_id if own else None)
        view = scheduler.look([wanted], now).get(wanted) if wanted else None
        if view:
            seen = dated(seen, view)
            view = scheduler.details(seen)
        ending = final_state(own, view, now, deadlines, log_tail(run_dir))
        if ending or time.monotonic() >= deadline:
            return ending
        time.sleep(min(_POLL_S, wait_s))


def _step(arguments: argparse.Namespace) -> Status:
    if not arguments.run_dir.is_dir():
        raise InputError(arguments.run_dir, "no such directory", "a run's directory", "run-dir")
    if arguments.job_id and not re.fullmatch(r"\d+(_\d+)?", arguments.job_id):
        raise InputError("command line", arguments.job_id, "a SLURM job id", "job-id")
    deadlines = Deadlines(grace_s=arguments.grace_s, lost_s=arguments.lost_s)
    ending = wait_for_ending(arguments.run_dir, arguments.job_id, deadlines, arguments.wait_s)
    if ending is None:
        return Status("fail", "not settled: the run goes on, or nobody knows")
    write_record(arguments.out, ending)
    cause = f", {ending.cause.value}" if ending.cause else ""
    words = f"{ending.state.value}{cause}: {ending.explanation}"
    return Status("ok" if ending.state is EndState.COMPLETED else "partial", words)


def main() -> None:
    """Command line."""
    cli = parser("Say how a run ended, from its own files and from SLURM.")
    cli.add_argument("--run-dir", type=Path, required=True, help="the run's files")
    cli.add_argument("--out", type=Path, required=True, help="ending, JSON")
    cli.add_argument("--job-id", help="SLURM job; default: what the manifest names")
    cli.add_argument("--wait-s", type=float, default=0.0, help="wait this long for an ending")
    cli.add_argument("--grace-s", type=float, default=300.0, help="for jobs that will not start")
    cli.add_argument("--lost-s", type=float, default=120.0, help="for jobs that nobody knows")
    run(_step, cli.parse_args())


if __name__ == "__main__":
    main()
