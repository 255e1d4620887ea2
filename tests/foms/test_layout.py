"""Ranks and batch from sources that may contradict each other."""

from __future__ import annotations

from perfproof.foms.layout import layout_of
from perfproof.foms.log import Log
from perfproof.foms.sources import Sources
from perfproof.schema.base import Reason
from tests.foms.logs import RANKS, manifest


def test_nothing_is_known() -> None:
    found = layout_of(None, Sources(), None)
    assert found.ranks is Reason.RANKS_UNKNOWN
    assert found.batch_size is Reason.BATCH_UNKNOWN


def test_the_log_knows_how_ranks_share_batches() -> None:
    found = layout_of(Log(ranks=16, data_ranks=8), Sources(batch_size=4), None)
    assert (found.ranks, found.data_ranks, found.batch_size) == (16, 8, 4)


def test_each_process_trained_alone_though_more_were_launched() -> None:
    found = layout_of(None, Sources(manifest=manifest(world_size=1), meta_ranks=2), None)
    assert found.ranks is Reason.DISAGREES
    assert found.data_ranks is Reason.DISAGREES
    assert found.conflicts == ("ranks: 1 (manifest), 2 (meta); expected one value",)


def test_what_was_asked_for_is_a_fallback_only() -> None:
    asked = manifest()
    asked.rank0, asked.reasons = None, {"rank0": Reason.RUN_INCOMPLETE}
    assert layout_of(None, Sources(manifest=asked), None).ranks == RANKS
    assert layout_of(None, Sources(manifest=asked, meta_ranks=4), None).ranks == 4
    assert layout_of(Log(seen_ranks=16), Sources(), None).ranks == 16


def test_tensor_parallel_ranks_of_the_configuration() -> None:
    found = layout_of(None, Sources(meta_ranks=4, config_ranks=4, config_data_ranks=2), None)
    assert (found.ranks, found.data_ranks) == (4, 2)
