"""Ranks and batch from sources that may contradict each other."""

from __future__ import annotations

from collections import Counter

import pytest

from perfproof.foms.layout import Layout, layout_of
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
    assert found.remarks == ("ranks: 1 (manifest), 2 (meta); expected one value",)


def test_what_was_asked_for_is_a_fallback_only() -> None:
    asked = manifest()
    asked.rank0, asked.reasons = None, {"rank0": Reason.RUN_INCOMPLETE}
    assert layout_of(None, Sources(manifest=asked), None).ranks == RANKS
    assert layout_of(None, Sources(manifest=asked, meta_ranks=4), None).ranks == 4


def seen(lines: dict[int, int]) -> Layout:
    return layout_of(Log(rank_lines=Counter(lines)), Sources(), None)


def test_ranks_of_step_lines_are_inferred_and_said_to_be() -> None:
    found = seen(dict.fromkeys(range(4), 20))
    assert (found.ranks, found.data_ranks) == (4, 4)
    assert found.remarks == (
        "ranks: 4, inferred from the step lines; expected a header or a record",
    )


def test_a_damaged_line_changes_no_ranks() -> None:
    whole = dict.fromkeys(range(4), 20)
    assert seen({**whole, 11: 1}).ranks == 4
    assert seen({0: 200, 11: 2}).ranks is Reason.RANKS_UNKNOWN
    stated = Log(ranks=2, data_ranks=2, rank_lines=Counter({**whole}))
    assert layout_of(stated, Sources(), None).ranks == 2


@pytest.mark.parametrize(
    "lines", [{0: 20}, {1: 20, 2: 20}, {0: 20, 2: 20}, {0: 20, 1: 4}, {0: 3, 1: 3}, {}]
)
def test_ranks_that_do_not_tell_their_number(lines: dict[int, int]) -> None:
    assert seen(lines).ranks is Reason.RANKS_UNKNOWN


def test_batch_of_configuration_and_manifest_must_agree() -> None:
    found = layout_of(None, Sources(batch_size=4, manifest=manifest()), None)
    assert found.batch_size is Reason.DISAGREES
    assert found.remarks == ("samples a rank a step: 4 (config), 8 (manifest); expected one value",)


def test_tensor_parallel_ranks_of_the_configuration() -> None:
    found = layout_of(None, Sources(meta_ranks=4, config_ranks=4, config_data_ranks=2), None)
    assert (found.ranks, found.data_ranks) == (4, 2)
