"""What real SLURM says of jobs, and what is left of it when the controller is away."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfproof.cluster import exclude, scheduler, utc
from perfproof.cluster.scheduler import ABSENT, JobView
from perfproof.cluster.waiting import Deadlines, scheduler_ending
from perfproof.schema.cluster import EndState
from tests.cluster.processes import wait_until
from tests.cluster.slurm_conf import AWKWARD_NAMES
from tests.cluster.testbed import Testbed

pytestmark = pytest.mark.cluster


def look(job_id: str) -> JobView:
    return scheduler.look([job_id], utc.now())[job_id]


def wait_for(job_id: str, state: str) -> JobView:
    wait_until(lambda: look(job_id).state == state, 30, f"job {job_id} {state}")
    return scheduler.details(look(job_id))


def test_exit_codes_and_deaths_by_signal(slurm: Testbed) -> None:
    left, killed = slurm.submit("exit 42"), slurm.submit("kill -9 $$")
    assert wait_for(left, "FAILED").exit_code == 42
    died = wait_for(killed, "FAILED")
    assert died.exit_code == 137
    assert "ExitCode=0:9" in died.said


def test_many_jobs_in_one_look(slurm: Testbed) -> None:
    done = slurm.submit("true")
    runs = slurm.submit("sleep 60", "--nodes=2", "--nodelist=b[1-2]")
    held = slurm.submit("true", "--hold")
    wait_for(done, "COMPLETED")
    wait_for(runs, "RUNNING")
    views = scheduler.look([done, runs, held, "99999"], utc.now())
    assert [views[job].state for job in (done, runs, held)] == ["COMPLETED", "RUNNING", "PENDING"]
    assert views["99999"].state == ABSENT
    assert views[runs].nodes == "b[1-2]"
    assert views[held].reason == "JobHeldUser"
    assert views[held].started is None
    started, submitted = views[runs].started, views[runs].submitted
    assert started
    assert submitted
    assert 0 <= (started - submitted).total_seconds() < 30
    assert abs((utc.now() - started).total_seconds()) < 60


def test_array_tasks_are_jobs_of_their_own(slurm: Testbed) -> None:
    array = slurm.submit("true", "--array=1-2", "--hold")
    views = scheduler.look([f"{array}_1", f"{array}_2"], utc.now())
    assert [view.state for view in views.values()] == ["PENDING", "PENDING"]


def test_cancel(slurm: Testbed) -> None:
    job = slurm.submit("sleep 60")
    assert scheduler.cancel(job)
    assert wait_for(job, "CANCELLED")


def test_known_nodes(slurm: Testbed) -> None:
    assert scheduler.known_nodes() == frozenset(slurm.layout.nodes)


def test_sbatch_takes_the_option_for_every_name(slurm: Testbed) -> None:
    names = [*AWKWARD_NAMES, "a1", "b2"]
    job = sbatch(slurm, exclude.exclude_flag(Path("no such file"), names, utc.now()))
    told = slurm.run("scontrol", "show", "hostnames", slurm.job(job)["ExcNodeList"])
    assert sorted(told.split()) == sorted(names)


def test_unknown_node_would_stop_every_job_unless_left_out(slurm: Testbed) -> None:
    names = ["a1", "was-renamed"]
    with pytest.raises(RuntimeError, match="Invalid node name"):
        sbatch(slurm, exclude.exclude_flag(Path("no such file"), names, utc.now()))
    known = scheduler.known_nodes()
    option = exclude.exclude_flag(Path("no such file"), names, utc.now(), known)
    assert slurm.job(sbatch(slurm, option))["ExcNodeList"] == "a1"


def sbatch(slurm: Testbed, option: str) -> str:
    """Submit as the executor does, through a shell."""
    words = f"sbatch --parsable --output=/dev/null {option} --hold --wrap=true"
    return slurm.run("sh", "-c", words).strip()


def test_accounting_answers_where_the_controller_does_not(accounted: Testbed) -> None:
    ended = accounted.submit("exit 3")
    cancelled = accounted.submit("sleep 60", "--nodelist=a2")
    runs = accounted.submit("sleep 60", "--nodelist=a1")
    wait_for(ended, "FAILED")
    wait_for(cancelled, "RUNNING")
    accounted.run("scancel", cancelled)
    wait_for(cancelled, "CANCELLED")
    wait_for(runs, "RUNNING")
    wait_until(lambda: "CANCELLED by" in _recorded(cancelled), 20, "accounting of the end")
    wait_until(lambda: "RUNNING" in _recorded(runs), 20, "accounting of the start")
    accounted.stop_controller()
    views = scheduler.look([ended, cancelled, runs, "99999"], utc.now())
    assert views[ended].state == "FAILED"
    assert views[ended].exit_code == 3
    assert views[cancelled].state == "CANCELLED"
    assert scheduler_ending(views[cancelled], utc.now(), Deadlines()) is EndState.CANCELLED
    assert views[runs].state == "RUNNING"
    assert "99999" not in views


def _recorded(job: str) -> str:
    argv = ["sacct", "-X", "-n", "-P", "-j", job, "--format=State"]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=20).stdout
