"""Recorded training runs against the facts measured with them (`runs/trace_facts.csv`).

The facts take the span from the first step's start to the last step's end as denominator, count
copies and memsets as computation, and round. Ours extend the window to the end of the launched
work and keep copies apart; both are computed here from the same columns.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from perfproof.traces.columns import read_trace
from perfproof.traces.context import make_context
from perfproof.traces.intervals import clip, difference_length, union
from perfproof.traces.rank_work import make_tables
from tests.conftest import SHARED_DATA

RUNS = SHARED_DATA / "runs"
_FACTS = RUNS / "trace_facts.csv"


def _facts() -> list[dict[str, str]]:
    if not _FACTS.is_file():
        return []
    with _FACTS.open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if (RUNS / row["trace"]).is_file()]


FACTS = _facts()


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: Path(fact["trace"]).parts[-2])
def test_facts_of_recorded_runs(fact, shared_data):
    context = make_context(read_trace(RUNS / fact["trace"], fact["trace"]), 0)
    tables = make_tables(context)
    steps = [dict(zip(tables["steps"].columns, r, strict=True)) for r in tables["steps"].rows]
    assert context.trace.events == int(fact["events"])
    assert len(steps) == int(fact["steps"])
    begin, end = int(context.steps.start[0]), int(context.steps.end[-1])
    assert (end - begin) / 1e6 / len(steps) == pytest.approx(float(fact["step_ms_mean"]), abs=0.006)
    assert len(context.trace.ops) / len(steps) == pytest.approx(
        float(fact["cpu_ops_per_step"]), abs=1
    )
    launches = np.mean([step["launches"] for step in steps])
    assert launches == pytest.approx(float(fact["launches_per_step"]), abs=0.6)
    gpu = context.gpu
    compute = ~context.comm
    busy = context.all_busy
    computing = union(gpu.start[compute], gpu.end[compute])
    shares = {
        "gpu_busy_frac": clip(busy.every, begin, end).length(),
        "compute_busy_frac": clip(computing, begin, end).length(),
        "nccl_frac": clip(busy.comm, begin, end).length(),
        "nccl_exposed_frac": difference_length(
            clip(busy.comm, begin, end), clip(computing, begin, end)
        ),
    }
    for name, time in shares.items():
        assert time / (end - begin) == pytest.approx(float(fact[name]), abs=0.0002), name
