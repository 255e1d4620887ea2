"""Run a resolved recipe in a run directory, and say in the manifest how it went, however it went.

Any ending of the training itself (also failure and time limit) is a result: the record is written
and the step succeeds. A node fault ends the step with exit code 42, so that the executor's retry
looks for other nodes; an interruption from outside ends it with 1, so that the run is made again.
Neither writes a record: the trial was not measured and answers for nothing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from perfproof.core.config import load_cluster
from perfproof.core.files import digest_file, read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.schema.run import LaunchRecord, Manifest, State
from perfproof.training.attempts import alone, set_aside
from perfproof.training.collectors.collection import Collection
from perfproof.training.environment import record
from perfproof.training.exits import first_exit_code
from perfproof.training.health import node_faults, probe_nodes
from perfproof.training.manifest import (
    MANIFEST_FILE,
    RANK0_FILE,
    RECIPE_FILE,
    complete,
    open_manifest,
)
from perfproof.training.nodes import Allocation, allocation
from perfproof.training.stall import Watchdog
from perfproof.training.start import Start, plan
from perfproof.training.supervise import Ending, Limits, Supervisor
from perfproof.training.workload import workload_module
from perfproof.training.wrap import RANK_SAYS

NODE_FAULT_EXIT = 42
LAUNCHER_OUTPUT = "launcher.txt"
# What the launcher needs at the end of an allocation to stop the ranks and complete the manifest.
_CLOSING_S = 60.0
# Endings of the training itself.
_RESULTS = (State.COMPLETED, State.FAILED, State.TIMEOUT)


@dataclass(frozen=True)
class Job:
    """One run to make. `prefix` comes before each rank's process."""

    resolved: ResolvedRecipe
    cluster: Cluster
    run_dir: Path
    run_id: str
    prefix: tuple[str, ...] = ()


def launch(job: Job, env: Mapping[str, str]) -> Manifest:
    """Make the run and return its completed manifest, which is also in the run directory."""
    write_record(job.run_dir / RECIPE_FILE, job.resolved)
    workload = workload_module(job.resolved.workload)
    command = workload.command(job.resolved, job.cluster, job.run_dir)
    given = allocation(job.cluster, job.resolved.nodes, env)
    start = plan(
        job.resolved,
        job.cluster,
        command,
        job.run_dir,
        prefix=job.prefix,
        base_env=env,
        nodes=given.nodes,
    )
    manifest = open_manifest(
        job.run_id,
        job.resolved,
        start.shown,
        given.nodes,
        env.get("SLURM_JOB_ID"),
        record(env, start.given),
    )
    begun, ending = time.monotonic(), None
    with Supervisor() as supervisor:
        collection = _collection(job, start, given, supervisor, env)
        write_record(job.run_dir / MANIFEST_FILE, manifest)
        try:
            ending = _run(job, start, given, supervisor, collection)
            workload.finish(job.resolved, job.cluster, job.run_dir)
        except BaseException as fault:
            reason = f"{type(fault).__name__}: {fault}"
            ending = ending or Ending(State.FAILED, None, " ".join(reason.split()))
            raise
        finally:
            if ending:
                duration = time.monotonic() - begun
                manifest = complete(manifest, ending, duration, job.run_dir, collection.record)
                write_record(job.run_dir / MANIFEST_FILE, manifest)
    return manifest


def _collection(
    job: Job, start: Start, given: Allocation, supervisor: Supervisor, env: Mapping[str, str]
) -> Collection:
    """What collects telemetry beside the ranks."""
    return Collection(
        cluster=job.cluster,
        run_dir=job.run_dir,
        nodes=given.nodes,
        job_id=env.get("SLURM_JOB_ID") or job.run_id,
        dtype=job.resolved.recipe.training.dtype,
        env=start.env,
        is_over=lambda: supervisor.signal_number is not None,
    )


def _run(
    job: Job, start: Start, given: Allocation, supervisor: Supervisor, collection: Collection
) -> Ending:
    """Probe the nodes, then train with collectors beside the ranks."""
    if job.cluster.health.enabled:
        faults = node_faults(probe_nodes(job.cluster, given.nodes, job.run_dir, start.env))
        if faults:
            return Ending(State.NODE_FAULT, None, f"node fault: {'; '.join(faults)}")
    output = job.run_dir / LAUNCHER_OUTPUT
    with collection:
        limit_s = time_limit_s(job.cluster, given.end_unix_s, time.time())
        ending = supervisor.run(start.argv, start.env, output, limits(job, limit_s))
    if ending.state is State.FAILED and output.is_file():
        said = output.read_text(errors="replace")
        if job.cluster.launcher == "srun" and not RANK_SAYS.search(said):
            return Ending(State.NODE_FAULT, None, f"no rank started: {_end_of(said)}")
        ending = replace(ending, exit_code=first_exit_code(said) or ending.exit_code)
    if output.is_file() and output.stat().st_size == 0:
        output.unlink()
    return ending


def _end_of(said: str) -> str:
    return " ".join(said.split())[-300:] or "no output of srun"


def limits(job: Job, time_s: float) -> Limits:
    """What ends the ranks, if they do not end themselves.

    srun has to take its ranks down; those of this machine must be gone at once.
    """
    stall_min = job.cluster.stall_timeout_min
    watchdog = (
        Watchdog(job.run_dir, 60.0 * stall_min, job.run_dir / RANK0_FILE) if stall_min else None
    )
    local = job.cluster.launcher == "local"
    return Limits(time_s, watchdog, signal.SIGKILL if local else signal.SIGTERM)


def time_limit_s(cluster: Cluster, end_unix_s: float | None, now_unix_s: float) -> float:
    """Seconds the ranks may run: the cluster's limit, or less where the allocation ends sooner."""
    limit = 60.0 * cluster.runtime_min
    if end_unix_s is not None:
        limit = min(limit, end_unix_s - now_unix_s - min(_CLOSING_S, 0.1 * limit))
    return max(limit, 0.0)


def status(manifest: Manifest) -> Status:
    """How the launch step ended, given how the run did."""
    code = "" if manifest.exit_code is None else f", exit code {manifest.exit_code}"
    said = f"{manifest.state.value}: {manifest.ended_by}{code}"
    if manifest.state is State.COMPLETED:
        return Status("ok", f"completed in {manifest.duration_s:.1f} s")
    if manifest.state in _RESULTS:
        return Status("partial", f"training {said}")
    return Status("fail", said)


def main() -> None:
    """`python -m perfproof.training.launch`."""
    cli = parser("Run a resolved recipe.")
    cli.add_argument("--root", type=Path, default=Path(), help="directory that holds config/")
    cli.add_argument("--recipe", type=Path, required=True, help="resolved recipe, JSON")
    cli.add_argument("--run-dir", type=Path, required=True, help="where the run leaves its files")
    cli.add_argument("--run-id", required=True, help="name of the run in all records")
    cli.add_argument("--record", type=Path, required=True, help="launch record, JSON")
    cli.add_argument(
        "--launcher-prefix", default="", help="words before each rank's process, one string"
    )
    arguments = cli.parse_args()
    states: list[State] = []
    try:
        run(lambda given: _step(given, states), arguments)
    except SystemExit as end:
        sys.exit(NODE_FAULT_EXIT if states == [State.NODE_FAULT] else end.code)


def _step(arguments: argparse.Namespace, states: list[State]) -> Status:
    resolved = read_record(arguments.recipe, ResolvedRecipe)
    job = Job(
        resolved=resolved,
        cluster=load_cluster(arguments.root, resolved.cluster),
        run_dir=arguments.run_dir,
        run_id=arguments.run_id,
        prefix=tuple(shlex.split(arguments.launcher_prefix)),
    )
    # In a SLURM job the lock of a lost node could outlive it and refuse the retry.
    with nullcontext() if "SLURM_JOB_ID" in os.environ else alone(job.run_dir):
        arguments.record.unlink(missing_ok=True)
        set_aside(job.run_dir, keep=[arguments.recipe])
        manifest = launch(job, os.environ)
        states.append(manifest.state)
        if manifest.state in _RESULTS:
            write_record(arguments.record, launch_record(manifest, job.run_dir))
    return status(manifest)


def launch_record(manifest: Manifest, run_dir: Path) -> LaunchRecord:
    """The record of a run that has ended."""
    return LaunchRecord(
        run_id=manifest.run_id,
        state=manifest.state,
        recipe_digest=manifest.recipe_digest,
        manifest_blake3=digest_file(run_dir / MANIFEST_FILE),
    )


if __name__ == "__main__":
    main()
