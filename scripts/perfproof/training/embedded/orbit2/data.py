"""Generated low- and high-resolution fields, shared out by file as the real loader does it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from perfproof.training.embedded.context import Context
from perfproof.training.embedded.loading import loader_options
from perfproof.training.embedded.orbit2.settings import Data

# Amplitudes fall with wave number to this power: smooth fields with fine structure.
_SLOPE = 2.5


def shard_files(n_files: int, shards: int, shard: int) -> list[int]:
    """Files of one shard (a loader worker of a rank).

    Every shard gets n_files // shards files and the rest stays unread; where files are fewer than
    shards, the list wraps and shards share files. More workers thus mean smaller shards, and since
    each worker batches its own shard, more partial batches.
    """
    if n_files < shards:
        return [shard % n_files]
    each = n_files // shards
    return list(range(shard * each, (shard + 1) * each))


class Fields(IterableDataset[tuple[Tensor, Tensor]]):
    """Samples (low (V_in, h, w), high (V_out, H, W)) of the files of this worker's shard."""

    def __init__(self, sizes: Data, seed: int, rank: int, world_size: int) -> None:
        self.sizes, self.seed = sizes, seed
        self.rank, self.world_size = rank, world_size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        shards, shard = workers * self.world_size, self.rank * workers + worker
        for file in shard_files(self.sizes.n_files, shards, shard):
            for number in range(self.sizes.samples_per_file):
                yield sample(self.sizes, self.seed, file, number)


def sample(sizes: Data, seed: int, file: int, number: int) -> tuple[Tensor, Tensor]:
    """Sample `number` of `file`: a pure function of the seed. Low resolution is a block mean."""
    rng = np.random.default_rng([seed, file, number])
    high = smooth_fields(rng, sizes.variables_in, sizes.height, sizes.width)
    rows, columns = sizes.height // sizes.scale, sizes.width // sizes.scale
    blocks = high.reshape(sizes.variables_in, rows, sizes.scale, columns, sizes.scale)
    low = blocks.mean(axis=(2, 4))
    return torch.from_numpy(low), torch.from_numpy(high[: sizes.variables_out].copy())


def smooth_fields(
    rng: np.random.Generator, count: int, height: int, width: int
) -> NDArray[np.float32]:
    """Random periodic fields (count, height, width), mean 0 and variance 1 each."""
    spectrum = np.fft.rfft2(rng.standard_normal((count, height, width)))
    rows, columns = np.fft.fftfreq(height) * height, np.fft.rfftfreq(width) * width
    wave_number = np.hypot(rows[:, None], columns[None, :])
    wave_number[0, 0] = np.inf
    fields = np.fft.irfft2(spectrum * wave_number**-_SLOPE, s=(height, width))
    normal: NDArray[np.float32] = fields / fields.std(axis=(1, 2), keepdims=True)
    return normal.astype(np.float32)


def loader(context: Context) -> DataLoader[tuple[Tensor, Tensor]]:
    """Batches as each worker makes them from its own shard, the partial last one included."""
    sizes = Data.model_validate(context.recipe.data)
    who = context.who
    fields = Fields(sizes, context.training.seed, who.rank, who.world_size)
    return DataLoader(fields, **loader_options(context))
