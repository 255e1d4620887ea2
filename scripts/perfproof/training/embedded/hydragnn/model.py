"""An invariant message-passing potential: energy from distances, so E(3)-invariant by design."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from perfproof.training.embedded.hydragnn.settings import Architecture


class Interaction(nn.Module):
    """One layer: messages along edges from both atoms and their distance, summed at the target."""

    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.message = _mlp(2 * sizes.hidden + sizes.radial, sizes.hidden)
        self.update = _mlp(2 * sizes.hidden, sizes.hidden)

    def forward(self, atoms: Tensor, radial: Tensor, weight: Tensor, edges: Tensor) -> Tensor:
        """New features of `atoms` (N, H), from `radial` (E, R), `weight` (E, 1), `edges` (2, E)."""
        source, target = edges
        pairs = torch.cat([atoms[source], atoms[target], radial], dim=-1)
        received = torch.zeros_like(atoms).index_add(0, target, self.message(pairs) * weight)
        return atoms + cast(Tensor, self.update(torch.cat([atoms, received], dim=-1)))


class Potential(nn.Module):
    """Energies of a batch of clusters. Forces are its gradient, so equivariant."""

    def __init__(self, sizes: Architecture, species: int, *, recomputes: bool = False) -> None:
        """`recomputes`: keep only the layers' inputs and recompute the rest in backward."""
        super().__init__()
        self.cutoff = sizes.cutoff
        self.recomputes = recomputes
        self.embed = nn.Embedding(species, sizes.hidden)
        self.layers = nn.ModuleList(Interaction(sizes) for _ in range(sizes.layers))
        self.head = _mlp(sizes.hidden, 1, middle=sizes.hidden)
        self.centres: Tensor
        self.register_buffer("centres", torch.linspace(0.5, sizes.cutoff, sizes.radial))

    def forward(
        self, species: Tensor, positions: Tensor, edges: Tensor, owner: Tensor, clusters: int
    ) -> Tensor:
        """Energy of each of the `clusters` (B,); arguments as in `Graphs`."""
        source, target = edges
        distance = torch.linalg.vector_norm(positions[target] - positions[source], dim=-1)
        radial, weight = self.radial(distance), self.smooth(distance).unsqueeze(-1)
        atoms = self.embed(species)
        for layer in self.layers:
            inputs = (atoms, radial, weight, edges)
            if self.recomputes:
                atoms = checkpoint(layer, *inputs, use_reentrant=False)
            else:
                atoms = layer(*inputs)
        energies = self.head(atoms).squeeze(-1)
        return torch.zeros(clusters, dtype=energies.dtype, device=energies.device).index_add(
            0, owner, energies
        )

    def radial(self, distance: Tensor) -> Tensor:
        """Gaussian basis of distances (E,): (E, R)."""
        width = self.cutoff / len(self.centres)
        return torch.exp(-(((distance.unsqueeze(-1) - self.centres) / width) ** 2))

    def smooth(self, distance: Tensor) -> Tensor:
        """Cosine cutoff: 1 at distance 0, 0 with zero slope at the cutoff."""
        return 0.5 * (torch.cos(math.pi * distance / self.cutoff) + 1.0)


def _mlp(inputs: int, outputs: int, middle: int | None = None) -> nn.Sequential:
    hidden = middle or outputs
    return nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, outputs))
