"""Every recorded run and every recorded trace alone becomes a report; broken ones say so."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED_DATA
from tests.workflow.chain import analyse

RUNS = sorted(SHARED_DATA.glob("runs/*/*/"))
TRACES = [*sorted(SHARED_DATA.glob("traces/*/*.json.gz")), SHARED_DATA / "traces/hta/multirank_a"]
# Runs that never reached a steady step: the compiler refused them, or the time limit ended them.
NO_FIGURES = {"egnn_compile_aot_eager", "mace_compile_model_inductor", "117m_bf16_unfixed_names"}
NO_CLAIMS = {"cpu_only_rank34of300.json.gz", "mi250_minitoy_train.json.gz"}

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def _load(path: Path) -> Any:
    return json.loads(path.read_text())


def _all_done(endings: dict[str, tuple[int, str]]) -> None:
    assert {module: line for module, (code, line) in endings.items() if code} == {}
    assert list(endings)[-1] == "report.render"


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_recorded_run_becomes_a_report(run: Path, tmp_path: Path, shared_data: Path) -> None:
    _all_done(analyse(run, tmp_path))
    report = _load(tmp_path / "combined_report.json")
    primary = report["foms"]["primary"]
    if run.name in NO_FIGURES:
        assert primary["value"] is None
        assert primary["reasons"]["value"] in {"no_step_lines", "no_steady_step"}
        assert report["status"] == "partial"
    else:
        assert primary["value"] > 0
    assert report["refuted"] == []
    has_trace = any(item["role"] == "trace" for item in report["provenance"]["inputs"])
    assert has_trace == bool([c for c in report["claims"] if c["source"] == "trace"])


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_a_trace_alone_becomes_a_report(trace: Path, tmp_path: Path, shared_data: Path) -> None:
    _all_done(analyse(trace, tmp_path))
    report = _load(tmp_path / "combined_report.json")
    assert report["foms"]["primary"]["reasons"]["value"] == "no_log"
    assert report["refuted"] == report["inconclusive"] == []
    assert bool(report["claims"]) == (trace.name not in NO_CLAIMS)


def test_what_cannot_be_read_is_named_and_the_rest_is_reported(
    tmp_path: Path, shared_data: Path
) -> None:
    """Rank 1's trace is cut, rank 0's log is binary: what remains is still a report."""
    run = tmp_path / "run"
    shutil.copytree(shared_data / "runs/hydragnn/egnn_fp64_b40_h1000_ddp2_trace", run)
    whole = gzip.decompress((run / "trace_rank1.json.gz").read_bytes())
    (run / "trace_rank1.json.gz").write_bytes(gzip.compress(whole[: len(whole) // 100]))
    (run / "log_rank0.txt").write_bytes(bytes(range(256)) * 400)
    endings = analyse(run, tmp_path / "out")
    _all_done(endings)
    assert endings["traces.tables"][1].startswith("STATUS=partial; reason=")
    assert "trace_rank1.json.gz" in endings["traces.tables"][1]
    assert endings["foms.extract"][1].startswith("STATUS=partial; reason=")
    assert "log_rank0.txt" in endings["foms.extract"][1]
    report = _load(tmp_path / "out" / "combined_report.json")
    assert report["status"] == "partial"
    assert {rank for claim in report["claims"] for rank in claim["ranks"]} >= {0}


@pytest.mark.parametrize(
    "content",
    [b"", b"not json", b'{"traceEvents": "x"}', b'{"some": "json"}', gzip.compress(b"{}")[:9]],
    ids=["empty", "text", "wrong type", "other json", "cut gzip"],
)
def test_nothing_usable_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "trace_rank0.json.gz").write_bytes(content)
    endings = analyse(run, tmp_path / "out")
    code, line = endings["report.combine"]
    assert code == 1
    assert line.startswith("STATUS=fail; reason=")
    assert "expected" in line
    assert not (tmp_path / "out" / "combined_report.json").exists()
