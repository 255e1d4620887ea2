"""The labels: Lennard-Jones energy and forces of a cluster, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def lennard_jones(positions: Floats, sigma: Floats, epsilon: Floats) -> tuple[float, Floats]:
    """Energy and forces of N atoms at `positions` (N, 3), with `sigma` and `epsilon` (N,) each.

    V(r) = 4 e ((s/r)^12 - (s/r)^6) over all pairs, s and e by the Lorentz-Berthelot rules
    (Allen and Tildesley, Computer Simulation of Liquids, section 1.4). Reduced units.
    """
    vectors = positions[:, None, :] - positions[None, :, :]
    squared = np.einsum("ijk,ijk->ij", vectors, vectors)
    np.fill_diagonal(squared, np.inf)
    mixed_sigma = 0.5 * (sigma[:, None] + sigma[None, :])
    mixed_epsilon = np.sqrt(epsilon[:, None] * epsilon[None, :])
    attraction = (mixed_sigma**2 / squared) ** 3
    pair_energy = 4.0 * mixed_epsilon * (attraction**2 - attraction)
    pair_force = 24.0 * mixed_epsilon * (2.0 * attraction**2 - attraction) / squared
    forces = np.einsum("ij,ijk->ik", pair_force, vectors)
    return 0.5 * float(pair_energy.sum()), forces
