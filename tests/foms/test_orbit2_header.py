"""Layout and memory lines of ORBIT-2."""

from __future__ import annotations

from pathlib import Path

from tests.foms.logs import layout, parse


def test_tensor_parallel_ranks_share_a_batch(tmp_path: Path) -> None:
    log = parse(tmp_path, layout(fsdp=4, ddp=2, tensor=2))
    assert (log.ranks, log.data_ranks) == (16, 8)


def test_world_size_without_a_layout(tmp_path: Path) -> None:
    log = parse(tmp_path, "world_size 2 world_rank 1 local_rank 1\n")
    assert (log.ranks, log.data_ranks) == (2, None)


def test_reserved_memory_is_the_maximum_in_gib(tmp_path: Path) -> None:
    lines = [
        f"rank {r} torch.cuda.memory_reserved: {v}GB\n" for r, v in ((0, 7.5), (1, 236.1), (0, 8))
    ]
    assert parse(tmp_path, "".join(lines)).reserved_bytes == round(236.1 * 2**30)


def test_layout_far_before_the_first_step(tmp_path: Path) -> None:
    parameters = "blocks.0.attn.qkv.weight torch.Size([3072, 1024])\n" * 60_000
    log = parse(tmp_path, layout() + parameters + "torch.cuda.memory_reserved: 1.0GB\n")
    assert (log.ranks, log.reserved_bytes) == (8, 2**30)
