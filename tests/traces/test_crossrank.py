from __future__ import annotations

import pytest

from perfproof.traces.crossrank import rank_collectives, skew
from tests.traces.builder import ranked
from tests.traces.make import by, context_of, records

GROUP = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "stream": 9}


def rank_of(number, durations, kind="allreduce", step=1, group=GROUP):
    trace = ranked(number, 2)
    trace.step(step, 1000, 1000)
    for index, duration in enumerate(durations):
        meta = {"Collective name": kind, **group} if group else {}
        trace.kernel("ncclDevKernel_X(Args)", 1100 + 100 * index, duration, **meta)
    return rank_collectives(context_of(trace, number))


def test_who_is_late_waits_least():
    found = skew([rank_of(0, [50, 40]), rank_of(1, [10, 45])])
    rows = records(found.tables["collective_skew"])
    assert [(r["index"], r["rank"], r["dur_us"], r["min_dur_us"], r["wait_us"]) for r in rows] == [
        (0, 0, 50, 10, 40),
        (0, 1, 10, 10, 0),
        (1, 0, 40, 40, 0),
        (1, 1, 45, 40, 5),
    ]
    waits = by(found.tables["collective_wait"], "rank")
    assert waits[0] == {
        "rank": 0,
        "collectives": 2,
        "wait_us": 40,
        "fraction_of_window": pytest.approx(0.04),
        "alone_us": 40,
        "alone_fraction_of_window": pytest.approx(0.04),
        "least_waiting_rank": 1,
    }
    assert not found.findings


def test_clocks_of_hosts_need_not_agree():
    late = ranked(1, 2)
    late.step(1, 500_000, 1000)
    late.kernel("ncclDevKernel_X", 500_100, 10, **{"Collective name": "allreduce", **GROUP})
    found = skew([rank_of(0, [50]), rank_collectives(context_of(late, 1))])
    assert by(found.tables["collective_wait"], "rank")[0]["wait_us"] == 40


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (rank_of(1, [10]), "collective_count_mismatch"),
        (rank_of(1, [10, 10], kind="broadcast"), "collective_order_mismatch"),
        (rank_of(1, [10, 10], step=2), "rank_steps_differ"),
    ],
)
def test_what_cannot_be_matched_is_said_and_not_compared(other, code):
    found = skew([rank_of(0, [50, 40]), other])
    assert found.tables["collective_skew"].rows == []
    assert found.tables["collective_wait"].rows == []
    assert {rank: [f.code for f in each] for rank, each in found.findings.items()} == {
        0: [code],
        1: [code],
    }


def test_without_metadata_all_collectives_are_one_group():
    found = skew([rank_of(0, [50], group=None), rank_of(1, [10], group=None)])
    rows = records(found.tables["collective_skew"])
    assert {(r["process_group"], r["ranks"], r["collective"]) for r in rows} == {
        ("all", "", "ncclDevKernel_X")
    }


def test_groups_that_only_one_rank_takes_part_in_are_left_out():
    alone = {"Process Group Name": "5", "Process Group Ranks": "[0, 2]"}
    found = skew([rank_of(0, [50], group=alone), rank_of(1, [10])])
    assert found.tables["collective_skew"].rows == []
    assert not found.findings


def test_one_rank_gives_no_tables():
    assert skew([rank_of(0, [50])]).tables == {}
    assert skew([rank_of(0, [50]), rank_of(1, [])]).tables == {}


def test_a_wait_beside_other_work_is_not_alone():
    """Rank 0 waits 1100-1140; a kernel runs 1110-1120, a collective it cannot match 1130-1200."""
    busy = ranked(0, 2)
    busy.step(1, 1000, 1000)
    busy.kernel("ncclDevKernel_X", 1100, 50, **{"Collective name": "allreduce", **GROUP})
    busy.kernel("gemm", 1110, 10)
    other = {"Collective name": "allreduce", "Process Group Name": "5", "stream": 11}
    busy.kernel("ncclDevKernel_X", 1130, 70, **other)
    found = skew([rank_collectives(context_of(busy, 0)), rank_of(1, [10])])
    waits = by(found.tables["collective_wait"], "rank")
    assert (waits[0]["wait_us"], waits[0]["alone_us"]) == (40, 20)
    assert (waits[1]["wait_us"], waits[1]["alone_us"]) == (0, 0)
