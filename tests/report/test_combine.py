"""Combining: ranking, verdict lists, status, problems, and the run that left nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.report.card import run_card
from perfproof.schema.base import Problem, Reason
from perfproof.schema.cluster import Cause, EndState, RunEnding
from perfproof.schema.report import Report

NO_STEPS = {"step_time_s": Reason.NO_STEP_LINES, "steady_step_times_s": [], "loss_curve": []}


def test_claims_rank_by_share_then_id_and_unknown_shares_come_last(parts: Any, make: Any) -> None:
    shares = {"TR-001": None, "TR-002": 0.1, "TR-003": 0.5, "TE-001": 0.5, "TE-002": 0.0}
    parts.claims = [make.claim(id_, share) for id_, share in shares.items()]
    ids = [claim.id for claim in parts.report().claims]
    assert ids == ["TE-001", "TR-003", "TR-002", "TE-002", "TR-001"]


def test_refuted_and_inconclusive_claims_are_kept_apart(parts: Any, make: Any) -> None:
    parts.claims = [
        make.claim("TR-001", 0.1),
        make.claim("TR-002", 0.9, verdict="refuted"),
        make.claim("TR-003", 0.8, verdict="inconclusive"),
        make.claim("TE-001", 0.95, verdict="refuted"),
    ]
    report = parts.report()
    assert [claim.id for claim in report.claims] == ["TR-001"]
    assert [claim.id for claim in report.refuted] == ["TE-001", "TR-002"]
    assert [claim.id for claim in report.inconclusive] == ["TR-003"]


def test_a_claim_id_that_comes_twice_is_told_and_the_first_stays(parts: Any, make: Any) -> None:
    parts.claims = [make.claim("TR-001"), make.claim("TR-001", 0.2)]
    report = parts.report()
    assert report.claims == [parts.claims[0]]
    assert [p.what.partition(",")[0] for p in report.problems] == ["id TR-001 again"]


def test_a_complete_run_is_ok(parts: Any) -> None:
    report = parts.report()
    assert report.status == "ok"
    assert report.problems == []
    assert [item.path for item in report.provenance.inputs] == ["log_rank0.txt"]


@pytest.mark.parametrize("part", ["inventory", "foms", "traces", "telemetry"])
def test_a_problem_of_any_input_makes_it_partial(parts: Any, make: Any, part: str) -> None:
    problem = Problem(where="x.json.gz", what="cut off; expected gzip")
    setattr(parts, part, make.changed(getattr(parts, part), problems=[problem.model_dump()]))
    report = parts.report()
    assert report.status == "partial"
    assert report.problems == [problem]


def test_a_problem_told_by_two_stages_is_told_once(parts: Any, make: Any) -> None:
    problem = {"where": "x.json.gz", "what": "cut off; expected gzip"}
    parts.inventory = make.changed(parts.inventory, problems=[problem])
    parts.traces = make.changed(parts.traces, problems=[problem])
    assert len(parts.report().problems) == 1


def test_no_primary_figure_makes_it_partial(parts: Any, make: Any) -> None:
    primary = make.changed(parts.foms.primary, value=Reason.BATCH_UNKNOWN)
    parts.foms = make.changed(parts.foms, primary=primary.model_dump())
    assert parts.report().status == "partial"


def test_a_failed_run_is_partial_and_says_so_first(parts: Any, make: Any) -> None:
    parts.manifest = make.manifest(state="failed", exit_code=137)
    report = parts.report()
    assert report.status == "partial"
    assert report.verdict.startswith("The run did not complete (state failed, exit code 137). ")
    assert "312.5" in report.verdict


def test_the_run_card_takes_the_ending_from_the_manifest(parts: Any) -> None:
    card = parts.report().run
    assert (card.state, card.exit_code, card.duration_s, card.trial) == (
        "completed",
        0,
        60.0,
        "baseline",
    )


def test_the_settled_ending_wins_over_the_manifests_word(parts: Any) -> None:
    ending = RunEnding(
        state=EndState.OUT_OF_MEMORY,
        cause=Cause.HOST_MEMORY,
        evidence="oom_kill",
        blame="run",
        exit_code=137,
        rests_on="both",
        scheduler_said="FAILED",
        explanation="",
    )
    card = run_card(parts.foms, parts.traces, parts.manifest, ending)
    assert card.state == "out_of_memory: host_memory"
    assert run_card(parts.foms, parts.traces, None, ending).state == card.state


def test_without_manifest_the_card_has_reasons(parts: Any) -> None:
    parts.manifest = None
    report = parts.report()
    assert report.status == "ok"
    assert report.run.state is None
    assert report.run.reasons["state"] is Reason.NO_MANIFEST
    assert report.run.node_list == ["node-a"]


def test_the_trace_names_the_device_where_nothing_else_does(parts: Any, make: Any) -> None:
    integrity = make.changed(parts.foms.integrity, device_name=Reason.NO_MANIFEST)
    parts.foms = make.changed(parts.foms, integrity=integrity.model_dump())
    assert parts.report().run.device_name == "NVIDIA H200"


def test_inputs_of_another_run_are_refused(parts: Any, make: Any) -> None:
    parts.telemetry = make.changed(parts.telemetry, run_id="mace/other")
    with pytest.raises(InputError, match=r"run_id.*'mace/other'.*mace/baseline"):
        parts.report()


def test_nothing_usable_is_one_line_that_names_the_directory(parts: Any, make: Any) -> None:
    primary = make.changed(parts.foms.primary, value=Reason.NO_STEP_LINES)
    parts.foms = make.changed(parts.foms, primary=primary.model_dump(), **NO_STEPS)
    parts.traces = make.changed(parts.traces, ranks=[])
    parts.telemetry = make.changed(parts.telemetry, gpus=[])
    with pytest.raises(InputError) as fault:
        parts.report()
    assert str(fault.value).startswith("runs/mace: no training step in a log")
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize("left", ["log", "traces", "telemetry"])
def test_one_usable_input_is_enough(parts: Any, make: Any, left: str) -> None:
    primary = make.changed(parts.foms.primary, value=Reason.NO_STEP_LINES)
    if left != "log":
        parts.foms = make.changed(parts.foms, primary=primary.model_dump(), **NO_STEPS)
    if left != "traces":
        parts.traces = make.changed(parts.traces, ranks=[])
    if left != "telemetry":
        parts.telemetry = make.changed(parts.telemetry, gpus=[])
    assert isinstance(parts.report(), Report)


def _combine(base: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfproof.report.combine"]
    for name in ("inventory", "foms"):
        command += [f"--{name}", f"{name}.json"]
    command += ["--traces", "tables/trace_summary.json", "--telemetry", "telemetry_summary.json"]
    command += ["--verified", "verified/trace.json", "verified/telemetry.json"]
    return subprocess.run(
        [*command, "--out", "out/report.json"],
        cwd=base,
        capture_output=True,
        text=True,
        check=False,
    )


def test_command_line_writes_what_the_function_returns(
    parts: Any, analysis: Callable[..., Path]
) -> None:
    parts.manifest = None
    base = analysis()
    done = _combine(base)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("STATUS=ok; reason=Throughput 312.5")
    assert (base / "out/report.json").read_bytes() == (base / "combined_report.json").read_bytes()


def test_command_line_reads_the_manifest_and_tells_when_it_is_broken(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    base = analysis()
    manifest = {"path": "manifest.json", "role": "manifest", "rank": 0}
    manifest |= {"size_bytes": 1, "blake3": "00"}
    inventory = make.changed(parts.inventory, root=".", artifacts=[manifest])
    (base / "inventory.json").write_text(inventory.model_dump_json())
    (base / "manifest.json").write_text(parts.manifest.model_dump_json(by_alias=True))
    assert "STATUS=ok" in _combine(base).stdout
    assert json.loads((base / "out/report.json").read_text())["run"]["state"] == "completed"
    (base / "manifest.json").write_text('{"run_id": ')
    done = _combine(base)
    assert done.returncode == 0
    assert "Problems: manifest.json: not JSON" in done.stdout


def test_command_line_tells_of_a_changed_table(analysis: Callable[..., Path]) -> None:
    base = analysis()
    (base / "tables/rank-0/steps.csv").write_text("step,duration_us\n")
    done = _combine(base)
    assert done.returncode == 0
    assert "Problems: tables/rank-0/steps.csv: another digest" in done.stdout


def test_command_line_names_a_missing_file(parts: Any, analysis: Callable[..., Path]) -> None:
    base = analysis()
    (base / "foms.json").unlink()
    done = _combine(base)
    assert done.returncode == 1
    assert done.stdout == "STATUS=fail; reason=foms.json: no such file; expected a JSON file\n"


def test_a_run_that_failed_before_its_first_step_is_still_a_report(parts: Any, make: Any) -> None:
    primary = make.changed(parts.foms.primary, value=Reason.NO_STEP_LINES)
    parts.foms = make.changed(parts.foms, primary=primary.model_dump(), **NO_STEPS)
    parts.traces = make.changed(parts.traces, ranks=[])
    parts.telemetry = make.changed(parts.telemetry, gpus=[])
    parts.manifest = make.changed(
        parts.manifest, state="failed", exit_code=1, ended_by="RuntimeError: double backward"
    )
    report = parts.report()
    assert report.status == "partial"
    assert report.verdict.startswith(
        "The run did not complete (state failed, exit code 1): RuntimeError: double backward. "
    )
