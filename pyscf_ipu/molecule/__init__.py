"""The input of a calculation, its checks, and the readers that make one."""

from pyscf_ipu.molecule.molecule import Molecule

__all__ = ["Molecule"]
