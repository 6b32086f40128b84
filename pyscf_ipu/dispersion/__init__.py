"""Corrections for London dispersion: what a functional's name asks for, energy and forces."""

from pyscf_ipu.dispersion.names import Dispersion, dispersion_of, without_suffix

__all__ = ["Dispersion", "dispersion_of", "without_suffix"]
