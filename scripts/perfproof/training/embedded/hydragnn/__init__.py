"""Relative of HydraGNN's interatomic potential: E(3)-invariant energies, forces as gradients."""
