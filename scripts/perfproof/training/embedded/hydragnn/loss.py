"""Training on energies and forces. Forces are a gradient, so training is a double backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from perfproof.training.embedded.hydragnn.data import Graphs


@dataclass(frozen=True)
class Losses:
    """Mean squared errors; `total` is what training minimises."""

    energy_per_atom: Tensor
    forces: Tensor

    @property
    def total(self) -> Tensor:
        """Sum of both."""
        return self.energy_per_atom + self.forces


def energy_forces(model: nn.Module, batch: Graphs, *, train: bool) -> tuple[Tensor, Tensor]:
    """Predicted energies (B,) and forces (N, 3). With `train`, forces can be differentiated."""
    with torch.enable_grad():
        positions = batch.positions.detach().requires_grad_(True)
        clusters = batch.energy.shape[0]
        energy = cast(Tensor, model(batch.species, positions, batch.edges, batch.owner, clusters))
        (gradient,) = torch.autograd.grad(energy.sum(), positions, create_graph=train)
    return energy, -gradient


def losses(model: nn.Module, batch: Graphs, *, train: bool) -> Losses:
    """The errors of `model` on a batch."""
    energy, forces = energy_forces(model, batch, train=train)
    atoms = torch.bincount(batch.owner, minlength=energy.shape[0]).to(energy.dtype)
    return Losses(
        (((energy - batch.energy) / atoms) ** 2).mean(), ((forces - batch.forces) ** 2).mean()
    )
