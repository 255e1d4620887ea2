"""Settle how a run ended, and put nodes that failed its probe on the exclude list.

After a launch (`--launch-exit`) the run's own files say most. A launch whose job died without a
word is settled by the next attempt (`--run-dir` alone), or by an invocation that gives up
(`--results`): SLURM is asked then.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from perfproof.cluster import exclude, scheduler, utc
from perfproof.cluster.ending import end_of, log_tail, manifest_of
from perfproof.cluster.scheduler import JobView
from perfproof.cluster.states import final_state
from perfproof.cluster.waiting import Deadlines
from perfproof.core.config import load_cluster
from perfproof.core.files import read_record, write_record, write_text
from perfproof.core.step import Status, parser, run
from perfproof.schema.cluster import ExcludedNode, HealthReport, RunEnding
from perfproof.schema.run import State

ENDING_FILE = "ending.json"
HEALTH_FILE = "node_health.json"
PROBE_FILE = "node_health_probe.txt"
_RUNS = "*/trials/*/nodes-*/rep-*"
# Whoever asks now is the next attempt, or gives up: the job is not going to be found.
_AT_ONCE = Deadlines(grace_s=0.0, lost_s=0.0)
_NODE_FAULT_EXIT = 42
_SLURM_LOGS = Path(".snakemake/slurm_logs")


def settle(run_dir: Path) -> RunEnding | None:
    """The ending of the run in `run_dir`, written to `ending.json`; None while its job goes on."""
    own, now = manifest_of(run_dir), utc.now()
    job_id = own.slurm_job_id if own else None
    view = scheduler.look([job_id], now).get(job_id) if job_id else None
    view = scheduler.details(view) if view else None
    ending = final_state(own, view, now, _AT_ONCE, log_tail(run_dir))
    if ending:
        write_record(run_dir / ENDING_FILE, ending)
    return ending


def settle_job(
    run_dir: Path, view: JobView, now: datetime, deadlines: Deadlines = _AT_ONCE
) -> RunEnding | None:
    """The ending of one job of a run, which may have left nothing in `run_dir`, or not been there.

    It goes to `results/cluster/endings/`, and into the run directory where that is the job's.
    """
    own = manifest_of(run_dir)
    mine = own if own and own.slurm_job_id == view.job_id else None
    tail = log_tail(run_dir) if mine else ""
    tail += "".join(end_of(path) for path in sorted(_SLURM_LOGS.glob(f"*/*/{view.job_id}.log")))
    ending = final_state(mine, view, now, deadlines, tail)
    if ending is None:
        return None
    name = "-".join(run_dir.parts[1:]) or run_dir.name
    write_record(exclude.EXCLUDE_FILE.parent / "endings" / f"{name}-{view.job_id}.json", ending)
    if mine or own is None:
        # The disk under it may be full, which is then what the ending says.
        with suppress(OSError):
            write_record(run_dir / ENDING_FILE, ending)
    return ending


def exclude_failed(run_dir: Path, listed: Path, days: float) -> list[str]:
    """Put the nodes that failed the probe in `run_dir` on the list; their names.

    The evidence is copied beside the list: the run directory belongs to the next attempt.
    """
    path = run_dir / HEALTH_FILE
    if not path.is_file():
        return []
    own, now = manifest_of(run_dir), utc.now()
    failed = [node for node in read_record(path, HealthReport).nodes if node.fault]
    for node in failed:
        job = own.slurm_job_id if own and own.slurm_job_id else "no-job"
        evidence = listed.parent / "evidence" / f"{node.name}-{job}.txt"
        write_text(evidence, (run_dir / PROBE_FILE).read_text(errors="replace"))
        found = ExcludedNode(
            name=node.name,
            reason=f"health probe: {node.fault}",
            evidence=evidence.as_posix(),
            first_seen=utc.text(now),
            last_seen=utc.text(now),
            expires=utc.text(now + timedelta(days=days)),
            by="perfproof.cluster.settle",
        )
        exclude.add(listed, found)
    return [node.name for node in failed]


def _after_launch(arguments: argparse.Namespace) -> Status:
    run_dir, code = arguments.run_dir, arguments.launch_exit
    own = manifest_of(run_dir)
    if own is None:
        return Status("fail" if code else "ok", f"the launch left no manifest (exit code {code})")
    names = []
    if own.state is State.NODE_FAULT and own.slurm_job_id:
        days = load_cluster(arguments.root, own.resolved.cluster).health.exclude_days
        names = exclude_failed(run_dir, arguments.file, days)
    words = _words(settle(run_dir))
    if names:
        words += f"; excluded from now on: {', '.join(names)}"
    if code:
        return Status("fail", words)
    return Status("ok" if own.state is State.COMPLETED else "partial", words)


def _words(ending: RunEnding | None) -> str:
    if ending is None:
        return "not settled: SLURM has not said how the job ended"
    cause = f", {ending.cause.value}" if ending.cause else ""
    return f"{ending.state.value}{cause}: {ending.explanation}"


def _previous(arguments: argparse.Namespace) -> Status:
    own = manifest_of(arguments.run_dir)
    if own is None or own.state is not State.RUNNING or (arguments.run_dir / ENDING_FILE).exists():
        return Status("ok", "no earlier attempt to settle")
    return Status("ok", f"earlier attempt: {_words(settle(arguments.run_dir))}")


def _given_up(arguments: argparse.Namespace) -> Status:
    """All runs without a record: how each ended, and which nodes were found bad on the way."""
    jobs = scheduler.jobs_by_comment()
    open_runs = sorted(
        path for path in arguments.results.glob(_RUNS) if not (path / "record.json").exists()
    )
    for run_dir in open_runs:
        name = run_dir.relative_to(arguments.results).as_posix()
        print(f"{name}: {_words(_last(run_dir, jobs.get(comment_of(name))))}")
    bad = exclude.active(exclude.read(arguments.file), utc.now())
    for node in bad:
        print(f"excluded node {node.name} until {node.expires}: {node.reason} ({node.evidence})")
    done = f"{len(open_runs)} run(s) without a result, {len(bad)} node(s) excluded"
    return Status("ok", done + ("; perfproof.cluster.nodes lists and clears them" if bad else ""))


def _last(run_dir: Path, job_id: str | None) -> RunEnding | None:
    """The ending of a run's last job. One that is recorded stays: it was seen from nearer."""
    if job_id is None:
        return settle(run_dir)
    told = sorted((exclude.EXCLUDE_FILE.parent / "endings").glob(f"*-{job_id}.json"))
    own = manifest_of(run_dir)
    if own and own.slurm_job_id == job_id and (run_dir / ENDING_FILE).is_file():
        told = [run_dir / ENDING_FILE]
    if told:
        return read_record(told[0], RunEnding)
    now = utc.now()
    view = scheduler.look([job_id], now).get(job_id)
    return settle_job(run_dir, scheduler.details(view), now) if view else None


def comment_of(run: str) -> str:
    """What the executor writes on the job of a run's launch: the rule and its wildcards."""
    model, _, trial, nodes, rep = run.split("/")
    values = (model, trial, nodes.removeprefix("nodes-"), rep.removeprefix("rep-"))
    return "rule_launch_wildcards_" + "_".join(values)


def _step(arguments: argparse.Namespace) -> Status:
    if arguments.results:
        return _given_up(arguments)
    return _previous(arguments) if arguments.launch_exit is None else _after_launch(arguments)


def main() -> None:
    """`python -m perfproof.cluster.settle`."""
    cli = parser("Settle how a run ended, from its own files and from SLURM.")
    cli.add_argument("--root", type=Path, default=Path(), help="directory that holds config/")
    cli.add_argument("--file", type=Path, default=exclude.EXCLUDE_FILE, help="exclude list, JSON")
    which = cli.add_mutually_exclusive_group(required=True)
    which.add_argument("--run-dir", type=Path, help="the files of one run")
    which.add_argument("--results", type=Path, help="all runs below that have no record")
    cli.add_argument("--launch-exit", type=int, help="exit code of the launch that has just ended")
    arguments = cli.parse_args()
    try:
        run(_step, arguments)
    except SystemExit as end:
        fault = end.code and arguments.launch_exit == _NODE_FAULT_EXIT
        sys.exit(_NODE_FAULT_EXIT if fault else end.code)


if __name__ == "__main__":
    main()
