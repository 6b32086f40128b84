"""Derivatives of converged energies with respect to the positions of the nuclei."""

from pyscf_ipu.gradient.program import energy_gradient, gradients

__all__ = ["energy_gradient", "gradients"]
