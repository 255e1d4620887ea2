"""An analysis directory that an author can be asked about, and authors as small programs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfproof.claims.authors.accept import Terms
from perfproof.claims.authors.author import Author
from perfproof.claims.authors.inputs import citable, given, sound_ranks
from perfproof.core.files import write_record
from perfproof.schema.claims import Source
from perfproof.schema.run import Inventory
from perfproof.schema.traces import TraceSummary
from perfproof.traces.tables import analyse
from tests.claims.kineto import Kineto, claim, inventory_of
from tests.claims.scenes import ADD, GEMM
from tests.report.conftest import make_foms

RUN = "artifacts/hand-made"
TIMELINE = "tables/rank-0/window_timeline.csv"
# The GPU idles 45 % of the step.
IDLE = 0.45
WRITES = """
import json, os, pathlib, sys, time
def answer(text):
    pathlib.Path("output/claims.json").write_text(text)
CLAIMS = json.loads({claims!r})
SET = {{"run_id": "artifacts/hand-made", "source": "trace", "claims": CLAIMS}}
"""
HONEST = 'answer(json.dumps(SET)); print("STATUS=ok; reason=one claim")'


@dataclass(frozen=True)
class Analysis:
    """What the earlier steps made."""

    base: Path
    inventory: Inventory
    traces: TraceSummary

    def inputs(self) -> dict[str, bytes]:
        return given(Source.TRACE, self.base, self.inventory, self.traces, None)

    def terms(self, author: str = "command:author.py") -> Terms:
        return Terms(
            author=author,
            run_id=RUN,
            source=Source.TRACE,
            files=citable(self.inputs(), Source.TRACE),
            ranks=sound_ranks(Source.TRACE, self.traces),
            levers=frozenset({"compile"}),
        )


def make_analysis(base: Path) -> Analysis:
    """One rank, one step of 1000 µs, 550 µs busy."""
    trace = Kineto().step(5, 0, 1000)
    trace.gpu(GEMM, 100, 300, launch=20).gpu(ADD, 500, 850, launch=310)
    trace.write(base / "run" / "trace_rank0.json.gz")
    inventory = inventory_of(base / "run")
    traces = analyse(inventory, base / "run", base)
    for name, record in (
        ("inventory.json", inventory),
        ("tables/trace_summary.json", traces),
        ("foms.json", make_foms().model_copy(update={"run_id": RUN})),
    ):
        write_record(base / name, record)
    return Analysis(base, inventory, traces)


def idle_claim(value: float = IDLE, **changes: Any) -> dict[str, Any]:
    """A claim with its evidence."""
    evidence = [{"file": TIMELINE, "where": "type=idle_time over type=total_time"}]
    made = claim("gpu_idle_fraction", value, "cpu_dispatch", evidence=evidence)
    return {**made, **changes}


def program(folder: Path, code: str, claims: list[Any] | None = None) -> Author:
    """An author that runs `code`; `answer(text)` writes its output, `SET` is a claims record."""
    path = folder / "author.py"
    made = [idle_claim()] if claims is None else claims
    path.write_text(WRITES.format(claims=json.dumps(made)) + code, encoding="utf-8")
    return Author("command:author.py", (sys.executable, str(path)), {}, 20.0)
