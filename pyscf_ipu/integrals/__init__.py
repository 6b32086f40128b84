"""One- and two-electron integrals from Hermite pair data."""

from pyscf_ipu.integrals.eri_matrix import eri_matrix
from pyscf_ipu.integrals.one_electron import OneElectron, nuclear_repulsion, one_electron

__all__ = ["OneElectron", "eri_matrix", "nuclear_repulsion", "one_electron"]
