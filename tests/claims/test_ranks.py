"""Metrics over several ranks: waiting, stragglers, topology."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfproof.claims.verify_trace import verify
from perfproof.schema.claims import Verdict, VerifiedClaim
from tests.claims.kineto import Kineto, claim, inventory_of, write_claims
from tests.claims.scenes import TOPOLOGY


class TestRanks:
    """Collectives over ranks: who waits is not the cause."""

    @staticmethod
    def two_ranks(root: Path, world: int = 2, devices: int = 8) -> None:
        """Rank 1 arrives late twice: rank 0 waits 100 + 50 µs; once rank 1 waits 10 µs."""
        fast, slow = (Kineto(rank, world, devices).step(1, 0, 1000) for rank in (0, 1))
        for trace, durations in ((fast, (120, 70, 20)), (slow, (20, 20, 30))):
            for start, duration in zip((100, 400, 800), durations, strict=True):
                trace.collective(start, start + duration, start - 10, [0, 1])
        fast.write(root / "trace_rank0.json.gz")
        slow.write(root / "trace_rank1.json.gz")

    def judged(self, tmp_path: Path, *claims: dict[str, Any]) -> list[VerifiedClaim]:
        path = write_claims(tmp_path / "claims.json", list(claims))
        return verify(path, inventory_of(tmp_path / "run")).claims

    def wait(self, value: float, straggler: int, **changes: Any) -> dict[str, Any]:
        params = {**TOPOLOGY, "straggler": straggler}
        return claim(
            "collective_wait_fraction", value, "comm_xgmi", **{"params": params, **changes}
        )

    def test_the_rank_that_waits_least_is_the_straggler(self, tmp_path: Path) -> None:
        self.two_ranks(tmp_path / "run")
        right, accused, other = self.judged(
            tmp_path, self.wait(0.15, 1), self.wait(0.15, 0), self.wait(0.01, 1, ranks=[1])
        )
        assert right.verdict is Verdict.VERIFIED, right.note
        assert accused.verdict is Verdict.REFUTED
        assert "rank 1 waits least" in accused.note
        assert other.verdict is Verdict.VERIFIED

    def test_different_counts_match_nothing(self, tmp_path: Path) -> None:
        self.two_ranks(tmp_path / "run")
        Kineto(1, 2).step(1, 0, 1000).collective(0, 10, 0, [0, 1]).write(
            tmp_path / "run" / "trace_rank1.json.gz"
        )
        (found,) = self.judged(tmp_path, self.wait(0.15, 1))
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "do not match in process groups 0" in found.note

    @pytest.mark.parametrize(("world", "devices"), [(2, 8), (8, 8)])
    def test_a_world_no_larger_than_the_visible_gpus_is_one_node(
        self, tmp_path: Path, world: int, devices: int
    ) -> None:
        self.two_ranks(tmp_path / "run", world, devices)
        assert self.judged(tmp_path, self.wait(0.15, 1))[0].verdict is Verdict.VERIFIED

    def test_the_manifest_decides(self, tmp_path: Path) -> None:
        """Two ranks on two nodes leave the node, whatever a rank sees."""
        self.two_ranks(tmp_path / "run")
        manifest = {"resolved": {"ranks": 2, "nodes": 2}}
        (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
        params = {"topology": "inter_node", "decided_by": "manifest", "straggler": 1}
        inter = self.wait(0.15, 1, params=params) | {"class": "comm_scaleout"}
        intra = self.wait(0.15, 1)
        assert [c.verdict for c in self.judged(tmp_path, inter, intra)] == [
            Verdict.VERIFIED,
            Verdict.REFUTED,
        ]

    def test_groups_inside_a_node_of_a_larger_world(self, tmp_path: Path) -> None:
        """16 ranks, 8 a node: only the groups that communicate in the window count."""
        self.two_ranks(tmp_path / "run", world=16, devices=8)
        assert self.judged(tmp_path, self.wait(0.15, 1))[0].verdict is Verdict.VERIFIED
