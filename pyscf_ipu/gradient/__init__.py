"""Derivatives of converged energies with respect to the positions of the nuclei."""

from pyscf_ipu.gradient.program import State, empty_states, energy_gradient, gradients

__all__ = ["State", "empty_states", "energy_gradient", "gradients"]
