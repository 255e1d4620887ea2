"""A real VictoriaMetrics gives the numbers of the built-in evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfproof.artifacts.inventory import take_inventory
from perfproof.core.victoria import StoreError, Victoria, binary, victoria
from perfproof.schema.run import Inventory
from perfproof.schema.telemetry import TelemetrySummary
from perfproof.telemetry.evaluate import Readings, SpanMs, evaluate
from perfproof.telemetry.export import read_export, write_export
from perfproof.telemetry.queries import QUERIES
from perfproof.telemetry.summarize import summarize
from perfproof.telemetry.victoria import ByPromql
from tests.telemetry.exports import card, counter, export_run, host, job, series, write_lines
from tests.telemetry.recorded import T0

RECORDED = (
    "hydragnn/egnn_fp64_b40_h1000_ddp2_rep1",
    "hydragnn/mace_fp32_b128",
    "orbit2/117m_bf16_b8_fsdp2_trace",
    "orbit2/117m_fp32_b8_trace",
)


@pytest.fixture(scope="module")
def program() -> str:
    found = binary()
    if found is None:
        pytest.skip("no VictoriaMetrics server (Debian package victoria-metrics)")
    return found


@pytest.fixture(scope="module")
def server(program: str) -> Iterator[Victoria]:
    with victoria(program) as running:
        yield running


def same(one: Any, other: Any) -> None:
    """Equal but for the last digits that a store may round."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=1e-9, abs=1e-12)
    else:
        assert one == other


def both(inventory: Inventory, program: str) -> TelemetrySummary:
    built_in, asked = summarize(inventory), summarize(inventory, None, program)
    same(built_in.model_dump(), asked.model_dump())
    return built_in


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs(shared_data: Path, program: str, name: str) -> None:
    found = both(take_inventory(shared_data / "runs" / name, "x"), program)
    assert found.gpus
    assert found.gpus[0].samples >= 1


def everything() -> list[dict[str, Any]]:
    """Each metric of each query, with gaps and a label that needs quoting."""
    fp64 = [f"SQ_INSTS_VALU_{kind}_F64" for kind in ("MFMA_MOPS", "FMA", "ADD", "MUL")]
    others = [f"SQ_INSTS_VALU_MFMA_MOPS_{kind}" for kind in ("F32", "F16", "BF16")]
    names = [*fp64, *others, "FETCH_SIZE", "WRITE_SIZE"]
    lines = [*card(0), *card(1, util=50, seconds=[s / 2 for s in range(50)]), *host()]
    lines += [counter(name, str(n), 1e6 * (n + 3)) for name in names for n in (0, 1)]
    labels = {"instance": "a1", "interface": 'ib"0\\ é'}
    for direction in ("tx", "rx"):
        lines.append(series(f"omnistat_network_{direction}_bytes", lambda s: s**2 * 1e9, **labels))
    for direction in ("read", "write"):
        name = f"rocm_xgmi_total_{direction}_kilobytes"
        lines.append(series(name, lambda s: s**3, instance="a1", card="0"))
    lines += [series("rocm_temperature_celsius", lambda s: 40 + s % 7, instance="a1", card="0",
                     location=place) for place in ("edge", "hotspot")]  # fmt: skip
    return [*lines, job("a1", "7")]


def test_an_export_with_every_metric(tmp_path: Path, program: str) -> None:
    steps = [T0 + 1 + 0.4 * n for n in range(30)] + [T0 + 15 + 0.4 * n for n in range(36)]
    found = both(export_run(tmp_path, everything(), steps=steps), program)
    there = {one.id: one.value for one in found.figures if one.value is not None}
    assert there["host_cpu_busy"] == 60
    assert {
        "fp64_average",
        "network_send_burst",
        "link_read_average",
        "hbm_read_burst",
        "temperature",
        "energy",
    } <= there.keys()


def compared(server: Victoria, tmp_path: Path, lines: list[Any], span: SpanMs,
             jobid: str | None = None) -> dict[str, Readings]:  # fmt: skip
    """Readings of all queries by both evaluators, which must agree."""
    store = read_export(write_lines(tmp_path / "e.gz", lines))
    server.load(write_export(store))
    found = {}
    for query in QUERIES.values():
        found[query.id] = evaluate(query, store, span, jobid)
        asked = ByPromql(server).readings(query, span, jobid)
        same({k: vars(v) for k, v in found[query.id].items()},
             {k: vars(v) for k, v in asked.items()})  # fmt: skip
    return found


def test_a_store_of_several_jobs_is_joined(server: Victoria, tmp_path: Path) -> None:
    """Without the join, the other job's node counts as ours."""
    nodes = ("join1", "join2")
    lines = [line for number, node in enumerate(nodes) for line in card(0, node, 50 + number)]
    lines += [job(node, f"j{number}") for number, node in enumerate(nodes)]
    span = (round(T0 * 1000), round(T0 * 1000) + 20000)
    found = compared(server, tmp_path, lines, span, "j1")
    assert {name: one.value for name, one in found["gpu_utilization"].items()} == {
        ("join2", "0"): 51
    }


def test_a_reset_counts_the_same(server: Victoria, tmp_path: Path) -> None:
    line = series("rocm_energy_joules", lambda s: s % 7, instance="reset1", card="0")
    span = (round(T0 * 1000), round(T0 * 1000) + 20000)
    store = read_export(write_lines(tmp_path / "e.gz", [line]))
    server.load(write_export(store))
    asked = ByPromql(server).readings(QUERIES["energy"], span)
    assert asked["reset1", "0"].resets == evaluate(QUERIES["energy"], store, span)[
        "reset1", "0"
    ].resets > 0  # fmt: skip


def test_a_bad_query_is_one_line(server: Victoria) -> None:
    with pytest.raises(StoreError, match="422") as fault:
        server.instant("sum(", 1)
    assert "\n" not in str(fault.value)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "server"
    broken.write_text("#!/bin/sh\necho no such flag >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(StoreError, match="does not start: no such flag"), victoria(str(broken)):
        pass
