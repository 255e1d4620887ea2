from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from perfproof.training.embedded.hydragnn.data import Clusters, Graphs, collate, neighbours
from perfproof.training.embedded.hydragnn.loss import energy_forces, losses
from perfproof.training.embedded.hydragnn.model import Potential
from perfproof.training.embedded.hydragnn.potential import lennard_jones
from perfproof.training.embedded.hydragnn.settings import Architecture, Data

SIZES = Architecture(hidden=8, layers=2, radial=4, cutoff=2.0)
CLUSTERS = Clusters("train", 8, Data(atoms_min=5, atoms_max=9), SIZES.cutoff, seed=3)


def batch(*numbers: int) -> Graphs:
    return collate([CLUSTERS[i] for i in numbers])


def potential(recomputes: bool = False) -> Potential:
    torch.manual_seed(0)
    return Potential(SIZES, species=3, recomputes=recomputes).double()


def moved(graphs: Graphs, positions: Tensor) -> Graphs:
    return graphs._replace(positions=positions)


def rotation() -> Tensor:
    matrix, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    return torch.from_numpy(matrix)


def test_labels_are_the_gradient_of_the_label_energy() -> None:
    rng = np.random.default_rng(0)
    positions = 1.2 * np.indices((2, 2, 1)).reshape(3, -1).T + rng.uniform(-0.1, 0.1, (4, 3))
    sigma, epsilon = rng.uniform(0.9, 1.0, 4), rng.uniform(0.8, 1.2, 4)
    _, forces = lennard_jones(positions, sigma, epsilon)
    numeric = np.empty_like(forces)
    for index in np.ndindex(*forces.shape):
        step = np.zeros_like(positions)
        step[index] = 1e-5
        ahead, _ = lennard_jones(positions + step, sigma, epsilon)
        behind, _ = lennard_jones(positions - step, sigma, epsilon)
        numeric[index] = -(ahead - behind) / 2e-5
    np.testing.assert_allclose(forces, numeric, rtol=1e-6, atol=1e-6)


def test_two_atoms_have_their_minimum_where_the_formula_says() -> None:
    at_minimum = np.array([[0.0, 0, 0], [2 ** (1 / 6), 0, 0]])
    energy, forces = lennard_jones(at_minimum, np.ones(2), np.full(2, 0.7))
    assert energy == pytest.approx(-0.7)
    np.testing.assert_allclose(forces, 0.0, atol=1e-12)


def test_neighbours_are_all_pairs_within_the_cutoff() -> None:
    positions = np.random.default_rng(1).uniform(0, 3, (12, 3))
    expected = {
        (i, j)
        for i in range(12)
        for j in range(12)
        if i != j and np.linalg.norm(positions[i] - positions[j]) < 1.5
    }
    assert set(zip(*neighbours(positions, 1.5).tolist(), strict=True)) == expected


def test_predicted_forces_are_the_gradient_of_the_predicted_energy() -> None:
    model, graphs = potential(), batch(0)
    _, forces = energy_forces(model, graphs, train=False)
    step = torch.zeros_like(graphs.positions)
    step[2, 1] = 1e-5
    ahead, _ = energy_forces(model, moved(graphs, graphs.positions + step), train=False)
    behind, _ = energy_forces(model, moved(graphs, graphs.positions - step), train=False)
    assert forces[2, 1].item() == pytest.approx(-(ahead - behind).item() / 2e-5, rel=1e-6)


def test_energy_is_invariant_and_forces_turn_with_the_cluster() -> None:
    model, graphs, turn = potential(), batch(0, 1), rotation()
    energy, forces = energy_forces(model, graphs, train=False)
    turned, turned_forces = energy_forces(
        model, moved(graphs, graphs.positions @ turn.T + 5.0), train=False
    )
    torch.testing.assert_close(energy, turned)
    torch.testing.assert_close(forces @ turn.T, turned_forces)


def test_a_batch_holds_its_clusters_apart() -> None:
    model = potential()
    together, forces = energy_forces(model, batch(0, 1, 2), train=False)
    alone = [energy_forces(model, batch(i), train=False) for i in range(3)]
    torch.testing.assert_close(together, torch.cat([energy for energy, _ in alone]))
    torch.testing.assert_close(forces, torch.cat([force for _, force in alone]))


def test_training_differentiates_forces_and_checkpointing_changes_no_gradient() -> None:
    gradients = []
    for recomputes in (False, True):
        model = potential(recomputes)
        losses(model, batch(0, 1), train=True).forces.backward()  # type: ignore[no-untyped-call]
        gradients.append([p.grad for p in model.layers.parameters()])
    plain, recomputed = gradients
    assert any(g is not None and g.abs().max() > 0 for g in plain)
    torch.testing.assert_close(plain, recomputed)


def test_clusters_follow_from_the_seed_alone() -> None:
    again = Clusters("train", 8, CLUSTERS.sizes, SIZES.cutoff, seed=3)
    other = Clusters("test", 8, CLUSTERS.sizes, SIZES.cutoff, seed=3)
    torch.testing.assert_close(again[5], CLUSTERS[5])
    assert other[5].energy != CLUSTERS[5].energy
    assert CLUSTERS[5].forces.abs().max() < 100
