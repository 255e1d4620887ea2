"""Claims about an export: the analyst's evaluator against two paths of the verifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfproof.artifacts.inventory import take_inventory
from perfproof.claims import verify_telemetry
from perfproof.claims.analyze_telemetry import analyze
from perfproof.core.files import read_record, write_record
from perfproof.core.victoria import binary
from perfproof.schema.claims import ClaimSet, Verdict, VerifiedSet
from perfproof.schema.run import Inventory
from perfproof.telemetry.summarize import summarize
from tests.claims.runs import make_manifest
from tests.telemetry.exports import card, export_run, host, series
from tests.telemetry.recorded import STEPS
from tests.workflow.chain import run_step

STEPS_WITH_PAUSE = [*STEPS[:14], *(time + 4 for time in STEPS[14:])]


def lines() -> list[dict[str, Any]]:
    """Eight cards on two nodes: one slow, its link too; one interface behind; busy hosts."""
    found: list[dict[str, Any]] = []
    for node in ("a1", 'a 2"é'):
        for number in range(4):
            slow = (node, number) == ('a 2"é', 3)
            found += card(number, node, util=60 if slow else 80, clock=1500 if slow else 2000)
            rate = 1e6 if slow else 3e6
            for way in ("read", "write"):
                found.append(series(f"rocm_xgmi_total_{way}_kilobytes", lambda s, r=rate: s * r,
                                    instance=node, card=str(number)))  # fmt: skip
            for reason, part in (("power_cap", 2), ("thermal", 5)):
                found.append(series("perfproof_throttled", lambda s, p=part: float(s % p == 0),
                                    instance=node, card=str(number), reason=reason))  # fmt: skip
        for interface, rate in (("ib0", 4e9), ("ib1", 1e9 if node == "a1" else 4e9), ("lo", 1.0)):
            for way in ("tx", "rx"):
                found.append(series(f"omnistat_network_{way}_bytes", lambda s, r=rate: s * r,
                                    instance=node, interface=interface))  # fmt: skip
        found += host(node)
    return found


def run_of(root: Path) -> Inventory:
    export_run(root, lines(), steps=STEPS_WITH_PAUSE)
    write_record(root / "manifest.json", make_manifest(8, 2, 1000))
    return take_inventory(root, "artifacts/recorded")


def checked(tmp_path: Path, by_query: bool) -> tuple[ClaimSet, VerifiedSet]:
    inventory = run_of(tmp_path / "run")
    claims = analyze(summarize(inventory), inventory)
    write_record(tmp_path / "claims.json", claims)
    return claims, verify_telemetry.verify(tmp_path / "claims.json", inventory, by_query)


EXPECTED = {
    ("gpu_utilization_mean", 'a 2"é'): 0.6,
    ("card_below_median_fraction", 'a 2"é'): 0.25,
    ("link_below_median_fraction", 'a 2"é'): 2 / 3,
    ("interface_below_median_fraction", "a1"): 0.75,
    ("host_cpu_busy_fraction", 'a 2"é'): 60 / 64,
    ("host_memory_used_fraction", 'a 2"é'): 0.96,
}


def test_outliers_are_claimed_by_name(tmp_path: Path) -> None:
    claims, _ = checked(tmp_path, by_query=False)
    found = {(c.metric, c.params["instance"]): c.value for c in claims.claims}
    assert {key: found.get(key) for key in EXPECTED} == pytest.approx(EXPECTED)
    (interface,) = {
        c.params["interface"] for c in claims.claims if "interface" in c.params
    }  # fmt: skip
    assert interface == "ib1"
    slow = next(c for c in claims.claims if c.metric == "link_below_median_fraction")
    assert slow.statement.startswith(
        '66.7 % on GPU 3 of node a 2"é, the highest of 8 GPUs, is how far its read rate'
    )


def test_raw_samples_verify_them(tmp_path: Path) -> None:
    claims, verdicts = checked(tmp_path, by_query=False)
    assert len(claims.claims) >= 8
    assert [c.note for c in verdicts.claims if c.verdict is not Verdict.VERIFIED] == []
    assert all("by the raw samples" in c.note for c in verdicts.claims)


def test_verdicts_do_not_depend_on_the_servers_of_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being asked to, the command starts no server: the same bytes everywhere."""
    _, raw = checked(tmp_path, by_query=False)
    common = ("--inventory", tmp_path / "inventory.json", "--claims", tmp_path / "claims.json")
    write_record(tmp_path / "inventory.json", run_of(tmp_path / "again"))
    out = tmp_path / "verified.json"
    monkeypatch.delenv(verify_telemetry.VERIFY_BY, raising=False)
    code, _ = run_step("claims.verify_telemetry", *common, "--out", out)
    assert code == 0
    assert read_record(out, VerifiedSet).claims == raw.claims


def test_queries_verify_them(tmp_path: Path) -> None:
    if binary() is None:
        pytest.skip("no VictoriaMetrics server (Debian package victoria-metrics)")
    _, raw = checked(tmp_path / "raw", by_query=False)
    _, asked = checked(tmp_path / "asked", by_query=True)
    assert all("by PromQL queries" in c.note for c in asked.claims)
    assert [c.note for c in asked.claims if c.verdict is not Verdict.VERIFIED] == []
    assert [c.verifier_value for c in asked.claims] == pytest.approx(
        [c.verifier_value for c in raw.claims], rel=1e-9
    )


@pytest.mark.parametrize("by_query", [False, True])
def test_a_wrong_claim_is_refuted(tmp_path: Path, by_query: bool) -> None:
    """A card's deficit told of another card, and the mean of all cards told of one."""
    if by_query and binary() is None:
        pytest.skip("no VictoriaMetrics server (Debian package victoria-metrics)")
    claims, _ = checked(tmp_path, by_query=False)
    made = [c.model_copy(update={"params": {**c.params, "gpu": 0}}) for c in claims.claims
            if c.metric in {"card_below_median_fraction", "gpu_utilization_mean"}]  # fmt: skip
    write_record(tmp_path / "c.json", claims.model_copy(update={"claims": made}))
    inventory = take_inventory(tmp_path / "run", "artifacts/recorded")
    found = verify_telemetry.verify(tmp_path / "c.json", inventory, by_query)
    assert {c.verdict for c in found.claims} == {Verdict.REFUTED}


def test_a_counter_that_resets_is_inconclusive(tmp_path: Path) -> None:
    claims, _ = checked(tmp_path, by_query=False)
    broken = [
        series(one["metric"]["__name__"], lambda s: s % 5,
               **{k: v for k, v in one["metric"].items() if k != "__name__"})
        if "xgmi" in one["metric"]["__name__"] else one
        for one in lines()
    ]  # fmt: skip
    export_run(tmp_path / "run", broken, steps=STEPS_WITH_PAUSE)
    write_record(tmp_path / "run" / "manifest.json", make_manifest(8, 2, 1000))
    inventory = take_inventory(tmp_path / "run", "artifacts/recorded")
    found = verify_telemetry.verify(tmp_path / "claims.json", inventory, by_query=False)
    notes = {c.metric: c.note for c in found.claims}
    assert "went backwards" in notes["link_below_median_fraction"]
    assert read_record(tmp_path / "claims.json", ClaimSet) == claims


@pytest.mark.parametrize("by_query", [False, True])
def test_a_damaged_export_is_the_same_to_all(tmp_path: Path, by_query: bool) -> None:
    """Bad lines, staleness markers, twice the same sample, and an end that is missing."""
    if by_query and binary() is None:
        pytest.skip("no VictoriaMetrics server (Debian package victoria-metrics)")
    stale = series("rocm_utilization_percentage", lambda _: 1.0, instance="a1", card="9")
    stale["values"] = [None, *[30.0] * 29]
    odd: list[dict[str, Any] | str] = ["{", '{"metric":{}}', stale, stale, *lines()]
    export_run(tmp_path / "run", odd, steps=STEPS_WITH_PAUSE)
    path = tmp_path / "run" / "telemetry" / "export.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-40])
    write_record(tmp_path / "run" / "manifest.json", make_manifest(8, 2, 1000))
    inventory = take_inventory(tmp_path / "run", "artifacts/recorded")
    summary = summarize(inventory)
    assert len(summary.problems) == 5, summary.problems
    claims = analyze(summary, inventory)
    write_record(tmp_path / "claims.json", claims)
    found = verify_telemetry.verify(tmp_path / "claims.json", inventory, by_query)
    assert {c.params["gpu"] for c in claims.claims if c.metric == "gpu_utilization_mean"} == {9}
    assert [c.note for c in found.claims if c.verdict is not Verdict.VERIFIED] == []
