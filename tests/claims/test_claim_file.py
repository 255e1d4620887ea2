"""Claims files that anybody may have written, and the verifier's command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfproof.claims.verify_trace import verify
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.schema.claims import Verdict, VerifiedSet
from tests.claims.kineto import claim, inventory_of, write_claims
from tests.claims.scenes import one_step


class TestFile:
    """Claims files that anybody may have written."""

    def test_order_and_length_are_kept_and_the_file_is_not_changed(self, tmp_path: Path) -> None:
        values = [0.45, 0.1, 0.45]
        made = [claim("gpu_idle_fraction", value, "cpu_dispatch") for value in values]
        path = write_claims(tmp_path / "claims.json", made)
        before = path.read_bytes()
        one_step().write(tmp_path / "run" / "trace_rank0.json.gz")
        found = verify(path, inventory_of(tmp_path / "run"))
        assert [c.value for c in found.claims] == values
        assert path.read_bytes() == before

    def test_what_is_no_claim_is_a_problem_and_the_rest_is_judged(self, tmp_path: Path) -> None:
        good = claim("gpu_idle_fraction", 0.45, "cpu_dispatch")
        bad = [{**good, "class": "vibes"}, "text", {**good, "value": None}, {**good, "id": "X"}]
        path = write_claims(tmp_path / "claims.json", [*bad, good])
        one_step().write(tmp_path / "run" / "trace_rank0.json.gz")
        found = verify(path, inventory_of(tmp_path / "run"))
        assert [c.verdict for c in found.claims] == [Verdict.VERIFIED]
        assert [p.what.split(":")[0] for p in found.problems] == [
            "claims.0.class",
            "claims.1",
            "claims.2.value",
            "claims.3.id",
        ]

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"statement": "x \ud800"}, "half a surrogate pair"),
            ({"\udfff": 1}, "half a surrogate pair"),
            ({"params": {"a": ["\ud800"]}}, "half a surrogate pair"),
            ({"params": {"a": json.loads("[" * 40 + "]" * 40)}}, "nested deeper"),
        ],
    )
    def test_what_no_record_can_hold_is_a_problem(
        self, tmp_path: Path, change: dict[str, Any], says: str
    ) -> None:
        good = claim("gpu_idle_fraction", 0.45, "cpu_dispatch")
        path = write_claims(tmp_path / "claims.json", [{**good, **change}, good])
        one_step().write(tmp_path / "run" / "trace_rank0.json.gz")
        found = verify(path, inventory_of(tmp_path / "run"))
        assert [c.verdict for c in found.claims] == [Verdict.VERIFIED]
        assert says in found.problems[0].what
        found.model_dump_json().encode("utf-8")

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"run_id": "artifacts/other"}, "claims of run 'artifacts/other'"),
            ({"source": "telemetry"}, "telemetry claims"),
            ({"claims": None}, "no list 'claims'"),
            ({"shema": 1}, "unknown key"),
            ({"run_id": "\ud800"}, "half a surrogate pair"),
        ],
    )
    def test_another_runs_claims_fail_in_one_line(
        self, tmp_path: Path, change: dict[str, Any], says: str
    ) -> None:
        path = write_claims(tmp_path / "claims.json", [])
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        one_step().write(tmp_path / "run" / "trace_rank0.json.gz")
        with pytest.raises(InputError, match=says) as fault:
            verify(path, inventory_of(tmp_path / "run"))
        assert "\n" not in str(fault.value)

    def test_the_command_line(self, tmp_path: Path) -> None:
        made = [
            claim("gpu_idle_fraction", 0.45, "cpu_dispatch"),
            claim("gpu_idle_fraction", 0.9, "cpu_dispatch"),
            claim("nothing", 0.9, "cpu_dispatch"),
        ]
        out, code = self.run(tmp_path, write_claims(tmp_path / "claims.json", made))
        assert (code, out.splitlines()[-1]) == (
            0,
            "STATUS=ok; reason=1 inconclusive, 1 refuted, 1 verified",
        )
        found = read_record(tmp_path / "out" / "trace.json", VerifiedSet)
        assert [c.verdict.value for c in found.claims] == ["verified", "refuted", "inconclusive"]

    def run(self, tmp_path: Path, claims: Path) -> tuple[str, int]:
        one_step().write(tmp_path / "run" / "trace_rank0.json.gz")
        write_record(tmp_path / "inventory.json", inventory_of(tmp_path / "run"))
        done = subprocess.run(
            [sys.executable, "-m", "perfproof.claims.verify_trace", "--claims", claims,
             "--inventory", tmp_path / "inventory.json", "--out", tmp_path / "out" / "trace.json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout, done.returncode
