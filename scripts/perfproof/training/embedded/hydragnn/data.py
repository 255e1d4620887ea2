"""Generated clusters of atoms with their labels, as batches of neighbour graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from perfproof.training.embedded.context import Context
from perfproof.training.embedded.hydragnn.potential import lennard_jones
from perfproof.training.embedded.hydragnn.settings import Architecture, Data
from perfproof.training.embedded.loading import loader_options

_SPACING = 1.15
_JITTER = 0.06
SPLITS = ("train", "validate", "test")


class Graphs(NamedTuple):
    """A batch of B clusters with N atoms and E directed edges in all."""

    species: Tensor
    """(N,) kind of each atom."""
    positions: Tensor
    """(N, 3) reduced units."""
    edges: Tensor
    """(2, E) from, to."""
    owner: Tensor
    """(N,) cluster of each atom."""
    energy: Tensor
    """(B,) label."""
    forces: Tensor
    """(N, 3) label."""

    def to(self, device: torch.device, dtype: torch.dtype) -> Graphs:
        """Copy to `device`, floating-point tensors as `dtype`."""
        moved = (
            t.to(device, dtype if t.is_floating_point() else None, non_blocking=True) for t in self
        )
        return Graphs(*moved)


@dataclass(frozen=True)
class Clusters(Dataset[Graphs]):
    """Clusters made on demand: number i of a split is a pure function of the seed and i."""

    split: str
    size: int
    sizes: Data
    cutoff: float
    seed: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Graphs:
        rng = np.random.default_rng([self.seed, SPLITS.index(self.split), index])
        atoms = int(rng.integers(self.sizes.atoms_min, self.sizes.atoms_max + 1))
        kinds = rng.integers(0, self.sizes.species, atoms)
        positions = _jittered_lattice(rng, atoms)
        weight = kinds / self.sizes.species
        energy, forces = lennard_jones(positions, 0.9 + 0.1 * weight, 0.8 + 0.4 * weight)
        return Graphs(
            torch.from_numpy(kinds),
            torch.from_numpy(positions),
            torch.from_numpy(neighbours(positions, self.cutoff)),
            torch.zeros(atoms, dtype=torch.int64),
            torch.tensor([energy], dtype=torch.float64),
            torch.from_numpy(forces),
        )


def _jittered_lattice(rng: np.random.Generator, atoms: int) -> NDArray[np.float64]:
    """The lattice points nearest to a random centre, each moved a little. (N, 3)."""
    edge = np.arange(int(np.ceil(atoms ** (1 / 3))) + 1, dtype=np.float64)
    points = np.stack(np.meshgrid(edge, edge, edge, indexing="ij"), axis=-1).reshape(-1, 3)
    distance = np.linalg.norm(points - rng.uniform(0.0, edge[-1], 3), axis=1)
    chosen = points[np.argsort(distance, kind="stable")[:atoms]]
    return _SPACING * chosen + rng.uniform(-_JITTER, _JITTER, (atoms, 3))


def neighbours(positions: NDArray[np.float64], cutoff: float) -> NDArray[np.int64]:
    """Directed edges (2, E) between all pairs of atoms nearer than `cutoff`."""
    vectors = positions[:, None, :] - positions[None, :, :]
    near = np.einsum("ijk,ijk->ij", vectors, vectors) < cutoff**2
    np.fill_diagonal(near, False)
    return np.stack(np.nonzero(near)).astype(np.int64)


def collate(clusters: list[Graphs]) -> Graphs:
    """One disconnected graph of all clusters: atom numbers shifted, owners numbered."""
    counts = torch.tensor([len(cluster.species) for cluster in clusters])
    offsets = torch.cumsum(counts, 0) - counts
    shifted = zip(clusters, offsets, strict=True)
    return Graphs(
        torch.cat([cluster.species for cluster in clusters]),
        torch.cat([cluster.positions for cluster in clusters]),
        torch.cat([cluster.edges + offset for cluster, offset in shifted], dim=1),
        torch.repeat_interleave(torch.arange(len(clusters)), counts),
        torch.cat([cluster.energy for cluster in clusters]),
        torch.cat([cluster.forces for cluster in clusters]),
    )


def loader(context: Context, split: str) -> DataLoader[Graphs]:
    """Batches of a split: each rank its own share, the training split in a new order an epoch."""
    sizes = Data.model_validate(context.recipe.data)
    cutoff = Architecture.model_validate(context.recipe.architecture).cutoff
    size = sizes.n_train if split == "train" else sizes.n_validate
    clusters = Clusters(split, size, sizes, cutoff, context.training.seed)
    sampler: DistributedSampler[Graphs] = DistributedSampler(
        clusters,
        num_replicas=context.who.world_size,
        rank=context.who.rank,
        shuffle=split == "train",
        seed=context.training.seed,
    )
    options = loader_options(context)
    return DataLoader(clusters, sampler=sampler, collate_fn=collate, **options)
