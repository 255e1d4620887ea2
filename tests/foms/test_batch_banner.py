"""The banner of batch scripts."""

from __future__ import annotations

from pathlib import Path

from tests.foms.logs import layout, parse

BANNER = "  Nodes        : 2\n  Total ranks  : 16\n  Batch size   : 8\n  Max epochs   : 6\n"


def test_ranks_and_batch(tmp_path: Path) -> None:
    log = parse(tmp_path, BANNER)
    assert (log.ranks, log.batch_size) == (16, 8)
    assert not log.has_training()


def test_the_trainer_knows_better(tmp_path: Path) -> None:
    assert parse(tmp_path, BANNER + layout(fsdp=4)).ranks == 4
