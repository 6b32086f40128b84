"""Derivatives of converged energies by the positions of the nuclei."""

from pyscf_ipu.gradient.program import energy_gradient

__all__ = ["energy_gradient"]
