from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from perfproof.schema.config import Recipe, ResolvedRecipe, Training, Workload
from perfproof.training.embedded.context import Context
from perfproof.training.embedded.orbit2.data import loader, sample, shard_files, smooth_fields
from perfproof.training.embedded.orbit2.settings import Data
from perfproof.training.identity import Identity

SIZES = Data(n_files=7, samples_per_file=5, height=4, width=8, scale=2)


def context(workers: int, rank: int = 0, world_size: int = 1) -> Context:
    recipe = Recipe(
        model="orbit2",
        description="x",
        training=Training(batch_size=4, num_workers=workers),
        data=SIZES.model_dump(),
    )
    resolved = ResolvedRecipe(
        trial="baseline",
        levers=[],
        workload=Workload.EMBEDDED,
        cluster="here",
        nodes=1,
        ranks=world_size,
        recipe=recipe,
        env={},
    )
    return Context(resolved, Path(), Identity(rank, rank, world_size), torch.device("cpu"))


@given(st.integers(1, 200), st.integers(1, 64))
def test_shards_are_equal_disjoint_and_wrap_only_when_files_are_few(
    files: int, shards: int
) -> None:
    parts = [shard_files(files, shards, i) for i in range(shards)]
    counts = Counter(file for part in parts for file in part)
    assert {len(part) for part in parts} == {max(1, files // shards)}
    assert set(counts) <= set(range(files))
    if files >= shards:
        assert set(counts.values()) == {1}
    else:
        assert max(counts.values()) - min(counts.values()) <= 1
        assert len(counts) == files


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(
    ("workers", "batches"),
    [
        (0, [4] * 8 + [3]),  # 7 files of 5 in one stream
        (1, [4] * 8 + [3]),
        (2, [4] * 6 + [3, 3]),  # 3 files each, one unread; workers take turns
        (4, [4] * 4 + [1] * 4),  # 1 file each
    ],
)
def test_the_number_of_workers_decides_the_realised_batches(
    workers: int, batches: list[int]
) -> None:
    assert [len(high) for _, high in loader(context(workers))] == batches


def test_ranks_read_different_files() -> None:
    first, second = (
        torch.cat([high for _, high in loader(context(0, rank, 2))]) for rank in (0, 1)
    )
    assert len(first) == len(second) == 15
    assert not any(torch.equal(a, b) for a in first for b in second)


def test_low_resolution_is_the_block_mean_of_high() -> None:
    low, high = sample(SIZES, seed=1, file=2, number=3)
    assert low.shape == (7, 2, 4)
    assert high.shape == (3, 4, 8)
    torch.testing.assert_close(low[1, 0, 2], high[1, 0:2, 4:6].mean())
    torch.testing.assert_close(sample(SIZES, seed=1, file=2, number=3), (low, high))
    assert not torch.equal(sample(SIZES, seed=1, file=2, number=4)[1], high)


def test_fields_are_normal_and_smooth() -> None:
    fields = smooth_fields(np.random.default_rng(0), 5, 16, 32)
    np.testing.assert_allclose(fields.mean(axis=(1, 2)), 0.0, atol=1e-5)
    np.testing.assert_allclose(fields.std(axis=(1, 2)), 1.0, rtol=1e-4)
    assert np.abs(np.diff(fields, axis=2)).mean() < 0.5
