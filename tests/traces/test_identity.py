from __future__ import annotations

import pytest

from perfproof.core.errors import InputError
from perfproof.schema.run import Artifact
from perfproof.traces.identity import check_single, file_rank, rank_of
from tests.traces.builder import TraceBuilder, ten_kernels
from tests.traces.make import trace_of


def artifact(path="trace.json", rank=None):
    reasons = {} if rank is not None else {"rank": "not_recorded"}
    return Artifact(path=path, role="trace", rank=rank, size_bytes=1, blake3="0", reasons=reasons)


def trace(rank=None):
    return trace_of(
        ten_kernels(**({"distributedInfo": {"rank": rank}} if rank is not None else {}))
    )


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("traces/rank0.pt.trace.json.gz", 0),
        ("sampled_rank-12.json", 12),
        ("a100_rank3of8_6steps.json.gz", 3),
        ("trace_8_rank_1.json", 1),
        ("rank7/trace.json", None),
        ("frank3.json", None),
        ("host_1382.1796053244880493490.pt.trace.json.gz", None),
    ],
)
def test_rank_in_a_file_name(path, rank):
    assert file_rank(path) == rank


def test_sources_in_order():
    assert rank_of(trace(2), artifact("x.json"), only=False) == 2
    assert rank_of(trace(), artifact("x.json", rank=3), only=False) == 3
    assert rank_of(trace(), artifact("rank4.json"), only=False) == 4
    assert rank_of(trace(), artifact("x.json"), only=True) == 0


def test_disagreement_names_both():
    with pytest.raises(InputError) as fault:
        rank_of(trace(2), artifact("rank4.json"), only=True)
    assert "distributedInfo says rank 2, the file name says rank 4" in str(fault.value)


def test_no_rank_among_several_traces_is_an_error():
    with pytest.raises(InputError, match="no rank in distributedInfo"):
        rank_of(trace(), artifact("x.json"), only=False)


def test_several_devices_in_a_file_are_refused():
    builder = ten_kernels()
    builder.gpu("other", 1000, 10, device=3)
    with pytest.raises(InputError, match=r"GPU events of devices 0, 3; expected one device"):
        check_single(trace_of(builder))


def test_merged_ranks_are_refused():
    builder = ten_kernels()
    builder.op("aten::add", 1000, 10, pid=200)
    with pytest.raises(InputError, match="CPU events of processes 100, 200"):
        check_single(trace_of(builder))


def test_one_device_is_fine_whatever_its_number():
    builder = TraceBuilder(device=9)
    builder.kernel("k", 10, 5)
    check_single(trace_of(builder))
