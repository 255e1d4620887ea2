"""The inventory: what was left, with digests."""

from __future__ import annotations

import os
from pathlib import Path

import blake3

from perfproof.artifacts.inventory import take_inventory
from perfproof.core.files import canonical_json
from perfproof.schema.base import Reason
from perfproof.schema.run import Role


def test_every_file_is_listed_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "log_rank1.txt").write_bytes(b"epoch  0\n")
    (tmp_path / "telemetry.csv").write_bytes(b"unix_ts,gpu\n")
    inventory = take_inventory(tmp_path, "artifacts/x")
    log, telemetry = inventory.artifacts
    assert (log.path, log.role, log.rank, log.size_bytes) == ("log_rank1.txt", Role.LOG, 1, 9)
    assert log.blake3 == blake3.blake3(b"epoch  0\n").hexdigest()
    assert telemetry.reasons == {"rank": Reason.NOT_APPLICABLE}


def test_an_empty_file_is_a_problem_and_the_others_remain(tmp_path: Path) -> None:
    (tmp_path / "log_rank0.txt").write_bytes(b"")
    (tmp_path / "log_rank1.txt").write_bytes(b"x")
    inventory = take_inventory(tmp_path, "r")
    assert [p.where for p in inventory.problems] == ["log_rank0.txt"]
    assert [a.rank for a in inventory.of(Role.LOG)] == [0, 1]


def test_one_file_can_be_the_whole_run(tmp_path: Path) -> None:
    trace = tmp_path / "some.pt.trace.json.gz"
    trace.write_bytes(b"x")
    inventory = take_inventory(trace, "r")
    assert (inventory.root, inventory.artifacts[0].path) == (str(tmp_path), trace.name)


def test_an_unnamed_rank_says_why(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(b"x")
    assert take_inventory(tmp_path, "r").artifacts[0].reasons == {"rank": Reason.NOT_RECORDED}


def test_a_file_that_cannot_be_named_or_read_is_a_problem_and_the_others_remain(
    tmp_path: Path,
) -> None:
    (tmp_path / "log_rank0.txt").write_bytes(b"x")
    (tmp_path / "trace_rank0.json").symlink_to(tmp_path / "nowhere" / "gone.json")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/trace_\xff.json")).write_bytes(b"{}")
    inventory = take_inventory(tmp_path, "r")
    assert [a.path for a in inventory.artifacts] == ["log_rank0.txt"]
    assert {p.where for p in inventory.problems} == {"trace_rank0.json", "trace_\\udcff.json"}
    assert canonical_json(inventory.model_dump(mode="json"))
