"""The `slurm-bounded` executor on a real cluster: every wait ends, and no job is forgotten."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from perfproof.cluster import exclude, scheduler, utc
from tests.cluster.processes import wait_until
from tests.cluster.slurm_conf import AWKWARD_NAMES
from tests.cluster.snakemake_run import SnakemakeRun
from tests.cluster.testbed import Testbed

pytestmark = pytest.mark.cluster

QUICK = (
    "--seconds-between-status-checks=1",
    "--slurm-bounded-grace=2",
    "--slurm-bounded-lost=3",
)

TROUBLE = """
CASES = ["succeeds", "node_lost", "preempted", "cancelled", "held", "unsatisfiable"]
rule all:
    input: [f"{case}.txt" for case in CASES]
rule succeeds:
    output: "succeeds.txt"
    resources: slurm_extra="--nodelist=a2"
    shell: "hostname > {output}"
rule node_lost:
    output: "node_lost.txt"
    resources: slurm_extra="--nodelist=b1"
    shell: "sleep 300; touch {output}"
rule preempted:
    output: "preempted.txt"
    resources: slurm_partition="low", slurm_extra="--nodelist=b2 --exclusive"
    shell: "sleep 300; touch {output}"
rule cancelled:
    output: "cancelled.txt"
    resources: slurm_extra="--nodelist=a2"
    shell: "sleep 300; touch {output}"
rule held:
    output: "held.txt"
    resources: slurm_extra="--nodelist=a1 --requeue"
    shell: "touch {output}"
rule unsatisfiable:
    output: "unsatisfiable.txt"
    resources: nodes=9, tasks=9
    shell: "touch {output}"
"""


@dataclass(frozen=True)
class Outcome:
    """What Snakemake printed, and rule by rule the id and the last state of its job."""

    log: str
    exit_code: int
    jobs: dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def trouble(four_nodes: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """One run in which every rule but one meets its own trouble."""
    four_nodes.reset()
    four_nodes.bad_prolog("a1")
    run = SnakemakeRun(four_nodes, tmp_path_factory.mktemp("trouble"))
    try:
        run.start(TROUBLE, *QUICK, "--jobs=9", "--keep-going")
        _make_trouble(run)
        exit_code = run.wait(60)
        yield Outcome(run.log, exit_code, run.jobs_by_rule())
    finally:
        run.end()


def _make_trouble(run: SnakemakeRun) -> None:
    def running() -> bool:
        assert run.runs(), run.log
        jobs = run.jobs_by_rule()
        wanted = ("node_lost", "preempted", "cancelled")
        return all(jobs.get(rule, ("", ""))[1] == "RUNNING" for rule in wanted)

    wait_until(running, 60, "jobs running")
    run.cluster.lose_node("b1")
    run.cluster.run("scancel", run.jobs_by_rule()["cancelled"][0])
    run.cluster.submit("sleep 1", "--partition=high", "--nodelist=b2", "--exclusive")


def test_job_that_succeeds_is_a_success(trouble: Outcome) -> None:
    assert trouble.exit_code == 1
    assert trouble.jobs["succeeds"][1] == "COMPLETED"
    assert "Finished jobid" in trouble.log


@pytest.mark.parametrize(
    ("rule", "ending", "left"),
    [
        ("node_lost", "node_fail", "NODE_FAIL"),
        ("preempted", "preempted", "PREEMPTED"),
        ("cancelled", "cancelled", "CANCELLED"),
        ("held", "held", "CANCELLED"),
        ("unsatisfiable", "unsatisfiable", "CANCELLED"),
    ],
)
def test_job_in_trouble_ends_as_what_it_is(
    trouble: Outcome, rule: str, ending: str, left: str
) -> None:
    job_id, state = trouble.jobs[rule]
    said = next(line for line in trouble.log.splitlines() if f"SLURM job {job_id} " in line)
    assert f"ended as {ending}; SLURM said: JobState=" in said
    assert state == left


def test_reason_of_a_held_job_is_told(trouble: Outcome) -> None:
    assert "Reason=launch_failed_requeued_held" in trouble.log.replace(" ", "_")


RETRIED = """
from pathlib import Path
from perfproof.cluster import exclude, utc
from tests.cluster.slurm_conf import AWKWARD_NAMES

LISTED = Path("excluded_nodes.json")

def away(wildcards):
    return exclude.exclude_flag(LISTED, AWKWARD_NAMES, utc.now()) + " --spread-job"

rule one:
    output: "done.txt"
    resources: slurm_extra=away
    shell: "if [ -e excluded_nodes.json ]; then hostname > {output}; else "
           "python -m perfproof.cluster.nodes --file excluded_nodes.json add $(hostname) "
           "--reason bad --evidence job.log; exit 42; fi"
"""


def test_retry_goes_to_a_node_that_is_not_excluded(snakemake: SnakemakeRun) -> None:
    snakemake.start(RETRIED, *QUICK, "--retries=1")
    assert snakemake.wait(90) == 0, snakemake.log
    bad = [node.name for node in exclude.read(snakemake.directory / "excluded_nodes.json").nodes]
    second = max(snakemake.jobs(), key=int)
    told = snakemake.cluster.job(second)["ExcNodeList"]
    names = snakemake.cluster.run("scontrol", "show", "hostnames", told).split()
    assert sorted(names) == sorted([*AWKWARD_NAMES, *bad])
    assert (snakemake.directory / "done.txt").read_text().strip() not in bad


SLEEPS = """
rule one:
    output: "done.txt"
    shell: "touch started.txt && sleep {seconds} && touch {{output}}"
"""


def test_controller_that_is_away_ends_no_job(snakemake: SnakemakeRun) -> None:
    snakemake.start(SLEEPS.format(seconds=28), *QUICK)
    started = snakemake.directory / "started.txt"
    wait_until(started.is_file, 60, "the job's own command")
    (job,) = snakemake.jobs()
    snakemake.cluster.stop_controller()
    back_s = time.monotonic() + 25
    assert scheduler.look([job], utc.now()) == {}
    time.sleep(max(0, back_s - time.monotonic()))
    snakemake.cluster.start_controller()
    assert snakemake.wait(60) == 0, snakemake.log


def test_interrupt_cancels_the_jobs(snakemake: SnakemakeRun) -> None:
    snakemake.start(SLEEPS.format(seconds=300), *QUICK)
    job = snakemake.wait_job("RUNNING")
    os.kill(snakemake.pid, signal.SIGINT)
    assert snakemake.wait(20) == 1
    snakemake.cluster.wait_state(job, "CANCELLED")


def test_bound_that_is_none_is_refused(snakemake: SnakemakeRun) -> None:
    snakemake.start(SLEEPS.format(seconds=1), "--slurm-bounded-grace=0")
    assert snakemake.wait(30) == 1
    assert "--slurm-bounded-grace: 0; expected 1 or more" in snakemake.log
    assert not snakemake.jobs()
