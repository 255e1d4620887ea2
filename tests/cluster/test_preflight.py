"""The preflight on a real cluster: what it says, line by line, and what it says to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfproof.cluster import exclude, utc
from perfproof.cluster.before import largest
from perfproof.cluster.preflight import _answered, line, preflight
from perfproof.cluster.preflight_checks import files, software, trainers
from perfproof.cluster.preflight_checks.site import Site, ok
from perfproof.cluster.preflight_checks.slurm import status_source
from perfproof.core.files import read_record, write_record
from perfproof.schema.cluster import ExcludedNode, Preflight
from perfproof.schema.config import Cluster, Recipe, ResolvedRecipe, Settings, Workload
from tests.cluster.snakemake_run import SnakemakeRun
from tests.cluster.testbed import Testbed

cluster = pytest.mark.cluster
MakeSite = Callable[..., Site]


@pytest.fixture
def site(root: Path, tmp_path: Path) -> MakeSite:
    """Make a run that is asked for, from keys of a cluster's file."""

    def make(nodes: int = 1, workload: Workload = Workload.EMBEDDED, **keys: Any) -> Site:
        base = {"cluster": "here", "description": "d", "launcher": "srun", "gpus_per_node": 8}
        there = Cluster.model_validate(base | keys)
        ranks = nodes * max(1, there.gpus_per_node)
        resolved = ResolvedRecipe(
            trial="baseline",
            levers=[],
            workload=workload,
            cluster="here",
            nodes=nodes,
            ranks=ranks,
            recipe=Recipe(model="hydragnn", description="a model"),
            env={},
        )
        profile = tmp_path / "slurm-bounded"
        if not profile.exists():
            shutil.copytree(root / "profiles" / "slurm-bounded", profile)
        listed = tmp_path / "excluded.json"
        return Site(root, tmp_path, there, resolved, "slurm-bounded", "", listed, 20.0)

    return make


def said(site: Site) -> dict[str, str]:
    """Each check's line, by its name."""
    return {check.name: line(check) for check in preflight(site).checks}


@cluster
def test_cluster_that_can_take_the_run(slurm: Testbed, site: MakeSite) -> None:
    lines = said(site(nodes=2, partition="batch", cpus_per_node=8))
    assert lines["slurm"].startswith("ok    slurm: slurm")
    assert lines["partition"] == "ok    partition: batch, up, at most UNLIMITED a job"
    assert lines["nodes"] == "ok    nodes: 4 of 4 fit (8 GPUs, 8 CPUs), 4 of them up, 0 excluded"
    assert lines["request"].startswith("ok    request: 2 nodes, 16 ranks: start 20")
    assert lines["account"] == "ok    account: none is set; SLURM keeps no accounts"
    kept = "ended jobs are kept for 3600 s (squeue, scontrol)"
    assert lines["status"].startswith("ok    status: no accounting")
    assert kept in lines["status"]
    assert not [text for text in lines.values() if text.startswith("fail")]
    # A cluster file without a partition gets the one that SLURM would take.
    assert said(site())["partition"] == lines["partition"]


@cluster
def test_run_that_the_cluster_cannot_take(slurm: Testbed, site: MakeSite) -> None:
    lines = said(site(nodes=5))
    assert lines["nodes"].startswith("fail  nodes: 4 of 4 fit (8 GPUs), 4 of them up, 0 excluded; ")
    assert "the run asks for 5; check gpus_per_node" in lines["nodes"]
    assert "Requested node configuration is not available; correct config" in lines["request"]
    more = said(site(gpus_per_node=9))
    assert more["nodes"].startswith("fail  nodes: 0 of 4 fit (9 GPUs)")
    assert more["request"].startswith("fail  request: 1 nodes, 9 ranks: ")


@cluster
def test_misspelt_partition_and_account(slurm: Testbed, site: MakeSite) -> None:
    lines = said(site(partition="bach", account="physics"))
    todo = "set partition in config/clusters/here.yaml to 'batch' (the nearest valid one)"
    assert lines["partition"] == f"fail  partition: no partition 'bach'; {todo}"
    assert lines["account"].startswith("warn  account: 'physics' cannot be checked: ")
    assert lines["nodes"].startswith("n/a   nodes: not asked")
    assert "Invalid partition name specified" in lines["request"]


@cluster
def test_partition_that_is_too_short_or_closed(slurm: Testbed, site: MakeSite) -> None:
    slurm.run("scontrol", "update", "partition=low", "maxtime=20")
    slurm.run("scontrol", "update", "partition=high", "state=down")
    try:
        short = said(site(partition="low", runtime_min=30))["partition"]
        closed = said(site(partition="high"))["partition"]
    finally:
        slurm.run("scontrol", "update", "partition=low", "maxtime=unlimited")
        slurm.run("scontrol", "update", "partition=high", "state=up")
    assert short.startswith("fail  partition: low allows 20 min, a run asks for 30; lower runtime")
    assert closed.startswith("fail  partition: high is DOWN; choose another")


@cluster
def test_drained_nodes_are_waited_for_and_excluded_ones_are_not(
    slurm: Testbed, site: MakeSite
) -> None:
    slurm.run("scontrol", "update", "node=a1", "state=drain", "reason=test")
    lines = said(site(nodes=4))
    assert lines["nodes"].startswith("warn  nodes: 4 of 4 fit (8 GPUs), 3 of them up")
    assert lines["nodes"].endswith("it will wait for: a1 drained")
    assert lines["request"].startswith("warn  request: ")
    now = utc.text(utc.now())
    bad = {"name": "b1", "reason": "bad", "evidence": "log", "by": "test"}
    found = ExcludedNode(**bad, first_seen=now, last_seen=now, expires="never")
    exclude.add(site().exclude_file, found)
    fewer = said(site(nodes=4))
    assert fewer["nodes"].startswith("fail  nodes: 3 of 4 fit (8 GPUs), 2 of them up, 1 excluded")
    assert "--exclude=b1" in fewer["request"]


@cluster
def test_controller_that_is_away(slurm: Testbed, site: MakeSite) -> None:
    slurm.stop_controller()
    lines = said(site())
    assert lines["slurm"].startswith("fail  slurm: slurm")
    assert "DOWN; wait, or check SLURM_CONF: nothing can be submitted" in lines["slurm"]
    assert lines["request"] == "n/a   request: not asked: SLURM does not answer"
    assert lines["profile"].startswith("ok    profile: ")


@cluster
def test_official_executor_without_accounting_would_wait_for_ever(
    slurm: Testbed, site: MakeSite
) -> None:
    told = line(status_source(site(), "slurm", ""))
    assert told.startswith("fail  status: no accounting (Slurm accounting storage is disabled)")
    assert told.endswith("would wait for ever: use --profile slurm-bounded")
    assert line(status_source(site(), "slurm", "squeue")).startswith("warn  status: ")


@cluster
@pytest.mark.slow_cluster
def test_accounts_of_a_cluster_that_keeps_them(accounted: Testbed, site: MakeSite) -> None:
    lines = said(site(account="physics"))
    mine = "set account in config/clusters/here.yaml to one of yours: root"
    assert lines["account"] == f"fail  account: 'physics' is not an account of yours; {mine}"
    assert said(site(account="root"))["account"] == "ok    account: root"
    assert lines["status"] == "ok    status: accounting answers (sacct)"


def test_cluster_without_scheduler(site: MakeSite) -> None:
    lines = said(site(launcher="local", gpus_per_node=0))
    names = ["slurm", "partition", "account", "nodes", "request", "status", "profile", "plugins"]
    assert list(lines)[:8] == names
    assert all(lines[name].startswith(f"n/a   {name}: not applicable") for name in names)
    assert lines["trainer"].startswith("ok    trainer: embedded, torch ")


def test_directories(site: MakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", str(tmp_path))
    here = site(launcher="local")
    assert files.writable(here, "shared", "$DATA").state == "ok"
    assert list(tmp_path.glob(".perfproof*")) == []
    assert line(files.writable(here, "shared", "$NOWHERE/x")).startswith(
        "fail  shared: $NOWHERE is not set; set it, or change config/clusters/here.yaml"
    )
    assert files.writable(here, "shared", f"{tmp_path}/none").state == "fail"
    assert files.readable(here, "data", "$DATA").state == "ok"
    assert files.readable(here, "data", "$DATA/none").found == f"nothing at {tmp_path}/none"
    # Only a shared file system shows nodes what the login host wrote.
    assert files.writable(site(), "shared", "$DATA").remedy.startswith("if nodes cannot see it")


def test_full_and_read_only_directories(site: MakeSite, tmp_path: Path) -> None:
    """A file system of its own, too small for the probe's file."""
    script = (
        f"mount -t tmpfs -o size=64k none {tmp_path} && cd {tmp_path} && exec {sys.executable} -c "
        "'import sys; from pathlib import Path\n"
        "from types import SimpleNamespace as S\n"
        "from perfproof.cluster.preflight_checks.files import writable\n"
        's = S(file="f", cluster=S(launcher="local"))\n'
        'print(writable(s, "shared", "."))\''
    )
    private = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    done = subprocess.run(private, capture_output=True, text=True, timeout=30)
    if done.returncode:
        pytest.skip(f"no permission for mount namespaces: {done.stderr}")
    assert "state='fail' found='.: No space left on device'" in done.stdout


def test_trainer_that_is_not_there(site: MakeSite, tmp_path: Path) -> None:
    def told(**upstream: str) -> str:
        keys = {"hydragnn": {"root": str(tmp_path), "python": sys.executable} | upstream}
        return line(trainers.trainer(site(workload=Workload.UPSTREAM, upstream=keys)))

    assert told().startswith(f"ok    trainer hydragnn: {tmp_path}, Python 3.")
    assert told(root="/none").endswith(
        "correct upstream.hydragnn.root in config/clusters/here.yaml"
    )
    assert told(entry="train.py").startswith("fail  trainer hydragnn: no file train.py in ")
    assert "no command apptainer-none; load its module" in told(python="apptainer-none exec x.sif")
    assert "no image /none.sif" in told(python="env /none.sif python3")
    assert told(python="false").startswith("warn  trainer hydragnn: false:")


def test_container_image_is_looked_for(site: MakeSite) -> None:
    there = {"image": "$IMAGE_OF_NOBODY"}
    assert trainers.container(site(container=there)).found == "$IMAGE_OF_NOBODY is not set"
    assert trainers.container(site(container={"image": "/none.sif"})).state == "fail"


def test_profiles(site: MakeSite, tmp_path: Path) -> None:
    here = site()
    assert software.profile(here).state == "ok"
    path = tmp_path / "slurm-bounded" / "config.yaml"
    path.write_text(yaml.safe_dump({"executor": "local"}))
    assert software.profile(here).remedy == "set executor to slurm or slurm-bounded"
    path.write_text("executor: [")
    assert "not YAML" in software.profile(here).found
    shutil.rmtree(path.parent)
    assert software.profile(here).state == "fail"


def test_question_that_hangs_is_a_failed_check() -> None:
    start = time.monotonic()
    questions = [("hangs", lambda: time.sleep(30)), ("answers", lambda: ok("answers", "x"))]
    hangs, answers = _answered(questions, 0.2)  # type: ignore[arg-type]
    assert time.monotonic() - start < 10
    assert hangs.found == "no answer within 0.2 s"
    assert answers.state == "ok"


def test_question_that_breaks_costs_only_itself() -> None:
    (check,) = _answered([("breaks", lambda: ok("x", str(1 / 0)))], 5)
    assert check.state == "fail"
    assert "division by zero" in check.found


def test_command_line_writes_the_record_and_agrees(
    site: MakeSite, root: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.json"
    resolved = site(launcher="local").resolved.model_copy(update={"cluster": "local", "ranks": 1})
    write_record(recipe, resolved)
    options = ["--root", str(root), "--recipe", str(recipe), "--out", "out.json"]
    done = subprocess.run(
        [sys.executable, "-m", "perfproof.cluster.preflight", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "STATUS=ok; reason=a run on 1 nodes of local can start"
    checks = read_record(tmp_path / "out.json", Preflight).checks
    assert [line(check) for check in checks] == done.stdout.splitlines()[:-1]


IMPOSSIBLE = """
from pathlib import Path
from perfproof.cluster.before import before_submission
from perfproof.schema.config import Settings
onstart:
    before_submission(
        workflow,
        Settings(model="hydragnn", cluster="mi355x", nodes=5, preflight={preflight}),
        Path("{root}"),
    )
rule launch:
    output: "x"
    shell: "touch x"
"""


@cluster
def test_nothing_is_submitted_after_a_failed_preflight(snakemake: SnakemakeRun, root: Path) -> None:
    snakemake.start(IMPOSSIBLE.format(root=root, preflight=True))
    assert snakemake.wait(60) == 1
    assert "fail  nodes: " in snakemake.log
    assert "the preflight failed: nothing was submitted" in snakemake.log
    assert snakemake.jobs() == {}


def test_the_largest_launch_is_asked_for() -> None:
    settings = Settings(model="orbit2", nodes=2)
    launches = [{"model": "hydragnn", "trial": f"t{n}", "nodes": str(n)} for n in (1, 4, 2)]
    asked = largest(settings, launches)
    assert (asked.model, asked.trial, asked.nodes) == ("hydragnn", "t4", 4)
    assert asked.cluster == settings.cluster
    assert largest(settings, [{}]) == settings


@cluster
def test_dry_run_asks_nothing(snakemake: SnakemakeRun, root: Path) -> None:
    snakemake.start(IMPOSSIBLE.format(root=root, preflight=True), "-n")
    assert snakemake.wait(60) == 0, snakemake.log
    assert "nodes: " not in snakemake.log
    assert not (snakemake.directory / "results").exists()


def test_without_a_slurm_executor_nothing_is_asked(root: Path, tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(IMPOSSIBLE.format(root=root, preflight=True))
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{root}/scripts"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "nodes: " not in done.stdout + done.stderr
    assert not (tmp_path / "results").exists()


@cluster
@pytest.mark.slow_cluster
def test_preflight_can_be_left_out(snakemake: SnakemakeRun, root: Path) -> None:
    snakemake.start(IMPOSSIBLE.format(root=root, preflight=False))
    assert snakemake.wait(60) == 0, snakemake.log
    assert list(snakemake.jobs().values()) == ["COMPLETED"]
